"""PCA publishing: rows along private directions, or synthetic rows from them."""

from adumbra.mechanisms.base import Method
from adumbra.mechanisms.pca.config import PCAConfig
from adumbra.mechanisms.pca.pictures import pictures, words
from adumbra.mechanisms.pca.plan import METHOD, settle
from adumbra.mechanisms.pca.release import draw

PCA = Method(
    name=METHOD,
    config=PCAConfig,
    settle=settle,
    draw=draw,
    pictures=pictures,
    words=words,
    purpose="the main directions of a table, and each row in them, noisy, or synthetic rows",
    data="tables",
    neighbours="replace-one; with -o output=sample add-remove and persons as well",
)

__all__ = ["PCA", "PCAConfig"]
