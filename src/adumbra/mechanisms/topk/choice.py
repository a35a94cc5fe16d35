"""Which algorithm `auto` is: a public rule of epsilon, k, rows and columns; no row is looked at.

    epsilon n >= 18 k^2, or 4 k^2      joint (pure) or gumbel (under delta): columns without counts
    else, where columns are crowded    frefirst
    else                               tps-refine (pure) or frefirst (under delta)

A selection has noise of about k / epsilon on counts that are some n / k apart, noisy counts have noise
that does not grow with k but with the items of a row. Rows of a table of truths hold far more of its
columns than item sets hold of their universe, so that a selection pays earlier there (4 instead of 18).

A second count of the columns near the k-th costs a third of the budget. With c = d / n columns per row,
g = 1 for add-remove and 2 for replace-one, it pays

    where g c / epsilon < 1/4                     noise is far below most counts, so few columns are near
    where g c^2 / epsilon >= 1/2, or c >= .3      most columns are hardly ever seen, and drop out

Between the two (crowded) nearly all columns stay, and one count with the whole budget is better.
Constants of item sets were chosen by looking at bms_webview1, kosarak_head, retail and tafeng; 4 by
looking at accidents, pumsb, jester and plants, on which the others were tried (see top-k.md).
Whoever asks for counts, a length or a longest length asks for an algorithm that makes counts.
"""

from dataclasses import replace

from adumbra.mechanisms.topk.config import Algorithm, TopKConfig, score_range
from adumbra.schema.schema import Schema

FEW = 18.0  # times k^2: epsilon n above which a selection of k columns beats noisy counts
FEW_TRUTHS = 4.0  # the same for a table of columns that are true or false
NEAR = 0.25  # columns per epsilon n from which a second count is of nearly all columns
WIDE = 0.5  # the same times columns per row: from here on most columns drop out
SPARSE = 0.3  # columns per row from which they do at any epsilon


def settled_config(config: TopKConfig, schema: Schema) -> TopKConfig:
    """The config with the algorithm that runs by its name."""
    if config.algorithm != Algorithm.AUTO:
        return config
    return replace(config, algorithm=_best(config, schema).value)


def _best(config: TopKConfig, schema: Schema) -> Algorithm:
    rows = schema.rows or config.expected_rows
    if rows is None or config.wants_counts:
        return config.chosen
    seen = config.epsilon / schema.reach.rows * rows
    if seen >= few(schema) * config.k**2:
        return Algorithm.JOINT if config.is_pure else Algorithm.GUMBEL
    return Algorithm.FREFIRST if _is_crowded(config, schema, rows) else config.chosen


def few(schema: Schema) -> float:
    """Times k^2: the least epsilon n for a selection."""
    return FEW_TRUTHS if schema.items is None else FEW


def _is_crowded(config: TopKConfig, schema: Schema, rows: int) -> bool:
    """Whether a second count would be of nearly all columns."""
    per_row = schema.width / rows
    noise = score_range(schema.reach) / config.epsilon
    return per_row * noise >= NEAR and per_row**2 * noise < WIDE and per_row < SPARSE


def choice_notes(asked: TopKConfig, settled: TopKConfig, schema: Schema) -> tuple[str, ...]:
    """What `auto` chose, and how to have counts where it makes none."""
    if asked.algorithm != Algorithm.AUTO or settled.chosen is asked.chosen:
        return ()
    if settled.chosen is Algorithm.FREFIRST:
        rule = "epsilon times the rows is of the order of the columns"
        return (f"auto is {settled.chosen} here, as {rule}: one count is better than two.",)
    rule = f"epsilon times the rows is at least {few(schema):g} k^2"
    gain = "it finds more of the columns than noisy counts do"
    return (f"auto is {settled.chosen} here, as {rule}: {gain}; algorithm={asked.chosen} has counts.",)
