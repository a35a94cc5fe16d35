"""RON-Gauss: Gaussian models of randomly projected rows."""

from adumbra.mechanisms.base import Method
from adumbra.mechanisms.ron_gauss.config import RONGaussConfig
from adumbra.mechanisms.ron_gauss.pictures import pictures, words
from adumbra.mechanisms.ron_gauss.plan import METHOD, settle
from adumbra.mechanisms.ron_gauss.release import draw

RON_GAUSS = Method(
    name=METHOD,
    config=RONGaussConfig,
    settle=settle,
    draw=draw,
    pictures=pictures,
    words=words,
    purpose="synthetic rows of one Gaussian, of one per class, or with a numeric target",
    data="tables",
    neighbours="replace-one or add-remove, of rows or of persons",
)

__all__ = ["RON_GAUSS", "RONGaussConfig"]
