"""The moments synthesizer: rows from noisy histograms and one noisy Gram."""

from adumbra.mechanisms.base import SYNTHETIC, Method
from adumbra.mechanisms.moments.config import MomentsConfig
from adumbra.mechanisms.moments.plan import METHOD, settle
from adumbra.mechanisms.moments.release import draw, pictures

WORDS = {
    "data": SYNTHETIC,
    "marginals": "Noisy histograms of all columns (of categories by class), then of the classes.",
    "one_way": "Noisy histograms of all columns over all classes, then of the classes.",
    "lengths": "Noisy counts of rows by their length, once they are centred and scaled.",
    "radius": "The length to which longer rows were shortened; chosen from the counts of lengths.",
    "gram": "Noisy sums of products of encoded columns and classes (upper triangle).",
    "chosen": "One line per measured table: its batch, then its columns by number (-1: only two).",
    "tables": "Noisy counts of the measured tables, one after the other; the last column runs fastest.",
}

MOMENTS = Method(
    name=METHOD,
    config=MomentsConfig,
    settle=settle,
    draw=draw,
    pictures=pictures,
    words=lambda *_: WORDS,
    purpose="synthetic rows of a mixed table or of item sets; the default, to be tried first",
    data="tables and item sets",
    neighbours="replace-one or add-remove, of rows or of persons",
)

__all__ = ["MOMENTS", "MomentsConfig"]
