"""What the moments synthesizer decides before it reads a row: columns, cells, shares, weights.

Every rule here is a function of public numbers (rows, columns, classes, budget). The constants were
chosen by looking at public data sets (docs/explanation/utility.md names them), none at run time.
"""

import math
from dataclasses import replace
from statistics import median

from adumbra.errors import Unsupported, require
from adumbra.mechanisms import sizes
from adumbra.mechanisms.fields import refuse_idle
from adumbra.mechanisms.moments.chosen import MOST_CELLS, candidates
from adumbra.mechanisms.moments.config import LEAST_SHARE, MomentsConfig
from adumbra.mechanisms.sizes import FLOAT, ROWS_GUESS, Size, Work
from adumbra.numerics import ROW_BITS
from adumbra.postprocess.decode import BLOCK_ROWS, BLOCK_VALUES
from adumbra.postprocess.moments.design import (
    BIN_PARTS,
    FINE_CELLS,
    Chosen,
    Design,
    Feature,
    features_of,
    label_of,
    with_pairs_by_class,
)
from adumbra.privacy.conversion import mu_of
from adumbra.privacy.guarantee import BUDGET_RANGE
from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Schema
from adumbra.statistics.moments import BlockGram

BLOCK_WIDTH = 3_000  # wider Grams are cut into blocks of this many encoded columns
SCORE_CELLS = 16
MOST_SCORE_CELLS = 32  # numbers have this many (more would not stay in the processor's cache) ...
QUIET_CELL = 0.05  # ... if the noise of a cell stays below this part of its expected rows
MOST_BINNED = 16  # numbers are cut into bins beside categories, if at most this many, and the noise of
BINNED_NOISE = (1.0, 8.0)  # a pair's cell is below so many expected counts: fewer categories, or as many
LABELLED_SHARE, PLAIN_SHARE, NUMBER_SHARE = 0.7, 0.35, 0.4  # of histograms: categories, or numbers
FEW_NUMBERS = ((8, 0.75), (32, 0.6))  # the same for at most so many numbers: few can share a shape;
FEW_CLASSES = 16  # of more classes less, as the Gram tells of each of them
NARROW_SHARE = 0.25  # of histograms, at least, for numbers of few columns, ...
DROWNED_SHARE = 0.3  # ... and for any number of them where pairs are noise
NOISY_SHARES = (0.7, 0.8)  # the same beside categories: without and with a class
POOLED_SHARES = (0.45, 0.65)  # of these, over all classes, at least, and more of many classes, ...
POOLED_KNOWN = (0.5, 0.75)  # ... so that this part is known of their sums; the second: pairs are loud
RADIUS_SHARE = 0.02
COARSE_CELLS = 16  # of a number that is cut into bins, instead of FINE_CELLS, ...
LOUD_CELLS = 0.05  # ... where noise alone would make these wrong by more than this (total variation) ...
ROUGH_SHARE = 0.5  # ... if histograms had this part of the budget
FINER_STEPS = 24  # finer cells of a whole number for each doubling of its value, counted by class, ...
MOST_FINER = 0.25  # ... if at most this part of the columns has them: each adds to the noise of all
FLAG_WEIGHT, NUMBER_WEIGHT = 0.3, math.sqrt(0.5)  # of the class in the Gram, in clip radii, ...
CONSTANT_WEIGHT = 0.1  # ... and of what tells nothing new: the constant, or classes of categories alone
CLIP_QUANTILES = (0.5, 0.9, 0.99)  # of the row norms: noisy, quiet and very quiet Grams, ...
PLAIN_QUANTILES = (0.3, 0.9, 0.99)  # the same for categories without a class, whose rows are moved too
NOISY_EDGES = (0.001, 0.0002)  # ... by a noise edge above these parts of the trace
PAIR_EDGES = (0.005, 0.001)  # the same for pairs of levels alone, whose rows are moved to show the Gram
MOST_REFINED = 2**17  # columns x codes, for each row, up to which values of drawn rows are moved ...
REFINED_EDGE = 0.1  # ... if the noise edge of the Gram is at most this part of its trace, ...
CLASSED_EDGE = 0.18  # ... or this one, where every column is counted by class. There pairs are loud ...
LOUD_EDGE = 0.05  # ... above this part: shares are those of noise, strengths are learnt from all pairs
MATRICES = 6  # copies of a block of the Gram: covariance, eigenvectors, their work space
KEPT_MATRICES = 2  # of every block: covariance and its root
SOLVED = 4  # multiplications of a block of the model, for each of its width cubed
LATENT = 4  # copies of a chunk of latent rows
TABLES_PER_COLUMN = (2, 4)  # chosen and measured; the second where a typical table of so many ...
MANY = 0.15  # ... has noise of at most this part of the rows, ...
MANY_PAIRED = 0.015  # ... or this one, where the Gram holds all pair tables; in so many batches ...
TABLE_BATCHES = 4
TABLE_SHARE = 0.35  # ... with this part of the budget, of which this part pays for the choices, ...
CHOICE_SHARE = 0.12
MOST_CHOSEN = 64  # ... in tables of at most so many columns ...
TYPICAL_CELLS = 64.0
DROWNED, QUIET = 0.4, 0.1  # ... whose typical table has noise of at most this part of the rows
DROWNED_CLASSED = 0.07  # ... or this one, where histograms by class are pair tables already, ...
DROWNED_SCORES = (0.3, 0.6)  # ... or where numbers are scores; the second: half of all pairs fit in
CODE_PARTS = (16, 32)  # codes of a number, where tables are measured: noisy and quiet


def design(config: MomentsConfig, schema: Schema) -> Design:
    """The rules: from the schema, the budget and a public (or guessed) number of rows."""
    require_row_unit(schema)
    # For the rules alone, a person of m rows is about a row at epsilon / m, or at the least legal one.
    config = replace(config, epsilon=max(config.epsilon / schema.reach.rows, BUDGET_RANGE[0]))
    schema.require_closed()
    count = schema.rows or config.expected_rows or ROWS_GUESS
    label, classes = label_of(schema)
    numeric = sum(c.is_numeric and i != label for i, c in enumerate(schema.columns))
    if numeric == 0:
        refuse_idle(config, {"numbers": "without columns of numbers"})
    columns = schema.width - (label is not None)
    require(columns >= 1, "columns: the label is the only one; declare a column to synthesize")
    listed = enumerate(schema.columns)
    levels = sum(c.levels > 2 and not c.is_numeric and i != label for i, c in listed)
    is_binned = levels > 0 and _is_binned(config, columns, numeric, count, few=numeric <= levels)
    is_binned = is_binned if config.numbers == "auto" else config.numbers == "bins"
    parts = (_bin_cells if is_binned else _score_cells)(config, schema, label, count)
    steps = FINER_STEPS if label is not None and is_binned and parts >= FINE_CELLS else 0
    features = features_of(schema, label, is_binned=is_binned, parts=parts, steps=steps)
    finer = sum(f.finer is not None for f in features)
    if steps and not 0 < finer <= MOST_FINER * schema.width:
        steps, features = 0, tuple(replace(feature, finer=None) for feature in features)
    share = config.marginal_share or _histogram_share(
        config, features, (count, classes), most=LABELLED_SHARE if label is not None else PLAIN_SHARE
    )
    is_pooled = label is not None and any(f.is_levels for f in features)
    # What finer histograms cost those over all classes pay, so that cells by class keep their noise.
    more = finer / schema.width if steps else 0.0
    pooled = [part - (1.0 - part) * more for part in _pooled_parts(classes)]
    weight = _class_weight(features) if label is not None else CONSTANT_WEIGHT
    decided = Design(
        features=features,
        is_binned=is_binned,
        parts=parts,
        label=label,
        classes=classes,
        rows=count,
        shares=_shares(share, pooled[0], is_pooled=is_pooled),
        is_pooled=is_pooled,
        label_units=round(weight * 2**ROW_BITS),
        quantile=CLIP_QUANTILES[0],
        steps=steps,
    )
    by_class = _with_pairs_by_class(decided)
    if relative_edge(config, by_class, by_class.widest) <= _most_edge(by_class):
        decided = by_class
    edge = relative_edge(config, decided, decided.widest)
    is_heard, is_loud = edge <= _most_edge(decided), edge > LOUD_EDGE and _is_by_class(decided)
    if config.marginal_share is None and (is_loud or not is_heard):  # one-way laws get more
        share = _histogram_share(
            config, features, (count, classes), most=NOISY_SHARES[label is not None], least=DROWNED_SHARE
        )
        decided = replace(decided, shares=_shares(share, pooled[1], is_pooled=is_pooled))
        edge = relative_edge(config, decided, decided.widest)
    is_refined = is_heard and _is_coded(decided)
    decided = replace(decided, is_refined=is_refined, is_loud=is_loud and is_refined)
    decided = _with_chosen(config, schema, decided, is_heard=is_heard)
    is_paired = decided.is_refined and not any(f.is_levels for f in features)
    edges = PAIR_EDGES if is_paired else NOISY_EDGES
    is_plain = decided.is_refined and not is_paired and label is None
    quantiles = PLAIN_QUANTILES if is_plain else CLIP_QUANTILES
    return replace(decided, quantile=quantiles[sum(edge <= limit for limit in edges)])


def _with_pairs_by_class(decided: Design) -> Design:
    """The design with columns of two levels counted by class, if others are more; or the same.

    That costs them noise over all classes. But where no column is left that learns its classes from the
    Gram, its noise falls by a third. Columns of one level count for nothing.
    """
    varied = _varied(decided.columns)
    pairs = sum(f.cells == 2 for f in varied)
    is_scored = any(f.cells > 2 and not f.is_levels for f in varied)
    if not decided.is_pooled or is_scored or not 0 < 2 * pairs < len(varied):
        return decided
    features = with_pairs_by_class(decided.features)
    units = round(_class_weight(features) * 2**ROW_BITS)
    return replace(decided, features=features, label_units=units, pairs_by_class=True)


def _varied(features: tuple[Feature, ...]) -> list[Feature]:
    """Columns that can differ between rows."""
    return [feature for feature in features if feature.cells > 1]


def _most_edge(decided: Design) -> float:
    """The noise edge, as a part of the trace, beyond which pairs are noise."""
    return CLASSED_EDGE if _is_by_class(decided) else REFINED_EDGE


def _is_by_class(decided: Design) -> bool:
    """Whether every column is counted by class."""
    return decided.is_pooled and all(f.is_levels for f in _varied(decided.features))


def _class_weight(features: tuple[Feature, ...]) -> float:
    """The weight of the class in the Gram: the less, the less is learnt there.

    Categories learn their classes from the histograms; numbers learn them from the Gram, and so does
    what says whether a number is missing.
    """
    varied = _varied(features)
    if all(f.is_levels for f in varied):
        return CONSTANT_WEIGHT
    return FLAG_WEIGHT if all(f.is_levels or f.is_flag for f in varied) else NUMBER_WEIGHT


def _shares(histograms: float, part: float, *, is_pooled: bool) -> tuple[float, ...]:
    """The parts of the budget; a part of the histograms' is for those over all classes, if any.

    Counts by class add up to those over all classes, with as many times the noise as there are classes.
    The less is known of any class, the more the law of all classes is worth beside them.
    """
    rest = (RADIUS_SHARE, 1.0 - histograms - RADIUS_SHARE)
    if not is_pooled:
        return (histograms, *rest)
    pooled = part * histograms
    return (histograms - pooled, *rest, pooled)


def _pooled_parts(classes: int) -> list[float]:
    """The part of histograms that is for those over all classes; the second where pairs are loud.

    Counts by class tell of these sums too, the less the more classes they are added over.
    """
    one = 1.0 / max(classes, 2)
    least = zip(POOLED_SHARES, POOLED_KNOWN, strict=True)
    return [max(part, (known - one) / (1.0 - one)) for part, known in least]


def _is_coded(decided: Design) -> bool:
    """Whether values of drawn rows can be moved: every column has codes, and a row takes little."""
    return all(f.is_levels or f.cells == 2 for f in decided.features) and _fits_codes(decided)


def _fits_codes(decided: Design) -> bool:
    """Whether all columns as codes are few enough to be moved."""
    codes = _coded(decided)
    return len(codes) * sum(codes) <= MOST_REFINED


def _coded(decided: Design) -> list[int]:
    """The codes of each column; the class is the last one."""
    cells = [f.counted for f in decided.columns]
    return [*cells, decided.classes] if decided.label is not None else cells


def _with_chosen(config: MomentsConfig, schema: Schema, decided: Design, *, is_heard: bool) -> Design:
    """The design with tables to be chosen and measured, where public numbers say that it pays off."""
    columns, codes = len(_coded(decided)), sum(_coded(decided))
    asked = config.table_share
    is_fit = _fits_codes(decided)
    many = f"at most {MOST_REFINED:,} columns x cells, and there are {columns} x {codes}"
    require(not asked or is_fit, f"table_share={asked}: joint tables need {many}; leave it out")
    few = f"table_share={asked}: a joint table needs two columns, and there is one; leave it out"
    require(not asked or columns >= 2, few)
    if asked == 0.0 or not is_fit or columns < 2 or (asked is None and not is_heard):
        return decided
    share = asked or TABLE_SHARE
    step = math.sqrt(2.0) if Neighbours.REPLACE_ONE in schema.reach.steps else 1.0
    sigma = step / (rough_mu(config) * math.sqrt(share * (1.0 - CHOICE_SHARE)))  # of one table alone
    pairs = columns * (columns - 1) // 2
    tables = min(TABLES_PER_COLUMN[0] * columns, pairs)
    is_classed = decided.label is not None and any(f.is_levels for f in decided.features)
    # Beside histograms by class few tables pay off, so their size is looked at: three typical columns.
    typical = min(TYPICAL_CELLS, median(_coded(decided)) ** 3) if is_classed else TYPICAL_CELLS
    level = typical * sigma * math.sqrt(tables) / decided.rows
    most = DROWNED if _is_coded(decided) else DROWNED_SCORES[2 * tables >= pairs]
    most = DROWNED_CLASSED if is_classed else most
    if asked is None and (level > most or columns > MOST_CHOSEN):
        return decided
    parts = CODE_PARTS[level <= QUIET]
    more = TABLES_PER_COLUMN[1] * columns
    loud = sigma * math.sqrt(more)
    is_paired = _is_coded(decided) and not is_classed  # the Gram holds all pair tables of codes
    if typical * loud <= (MANY_PAIRED if is_paired else MANY) * decided.rows:
        tables = max(tables, min(more, _measurable(decided, parts, loud)))
    first = tuple(part * (1.0 - share) for part in decided.shares)
    return replace(
        decided,
        is_refined=_is_coded(decided),
        shares=(*first, share * CHOICE_SHARE, share * (1.0 - CHOICE_SHARE)),
        chosen=Chosen(tables=tables, batches=TABLE_BATCHES, parts=parts, share=share),
    )


def _measurable(decided: Design, parts: int, sigma: float) -> int:
    """About how many tables can be candidates: more than these would be paid for and never chosen.

    Of so many columns that there are enough in any case, some are looked at.
    """
    most = [MOST_CELLS if f.edges is None else parts for f in decided.columns]
    sizes = map(min, _coded(decided), [*most, MOST_CELLS])
    return len(candidates(tuple(sizes)[-MOST_CHOSEN:], sigma, float(decided.rows), seed=0))


def relative_edge(config: MomentsConfig, decided: Design, width: int) -> float:
    """The noise edge of the Gram over its trace, if rows have the length of the radius (replace-one)."""
    mu = rough_mu(config) * math.sqrt(decided.shares[2])
    off = (1.0 + decided.label_weight**2) / mu
    return 2.0 * off * math.sqrt(width) / decided.rows


def rough_mu(config: MomentsConfig) -> float:
    """The budget as mu; of a pure one, what noise of the same size would be (for rules alone)."""
    return mu_of(config.epsilon, config.delta) if config.delta > 0 else config.epsilon / 4.0


def require_row_unit(schema: Schema) -> None:
    """Rows are clipped, so one element is no unit here."""
    if schema.unit is Unit.ELEMENT:
        raise Unsupported(f"unit={schema.unit}: moments shortens whole rows; declare unit='row'")


def _is_binned(config: MomentsConfig, columns: int, numeric: int, rows: int, *, few: bool) -> bool:
    """Whether numbers may be cut into bins: few of them, and pairs of bins stand out of the noise."""
    pair_noise = 0.7 * columns / (rough_mu(config) * 0.5)
    return numeric <= MOST_BINNED and pair_noise * BIN_PARTS**2 / rows <= BINNED_NOISE[few]


def _histogram_share(
    config: MomentsConfig,
    features: tuple[Feature, ...],
    known: tuple[int, int],
    *,
    most: float,
    least: float = 0.0,
) -> float:
    """The histograms' part of the budget: `most` beside categories, else less, the more cells drown.

    With a class they are pair tables, which carry most of what is known of it. Without one they are
    known well soon, and pairs hold nearly all of the error, unless these are noise.

    Errors of histograms and of the Gram both grow with sqrt(columns) / (rows mu), so that the best
    parts hardly depend on either. But of many numbers, whose columns share a shape, a cell with more
    noise than rows is worth little. The mean over columns, each by its own cells. Never below `least`,
    nor below what a config may ask for: nothing is left of less. Few columns share no shape, and their
    Gram needs little, unless it must tell many classes apart. `known` are the rows and the classes.
    """
    rows, classes = known
    if any(f.is_levels for f in features):
        return most
    for limit, share in FEW_NUMBERS:
        if len(features) <= limit:
            return NUMBER_SHARE + (share - NUMBER_SHARE) * min(1.0, FEW_CLASSES / classes)
    sigma = math.sqrt(2.0 * (len(features) + 1) / NUMBER_SHARE) / rough_mu(config)
    cells = [SCORE_CELLS if f.edges is not None else f.cells for f in features]  # a number's crowd
    heard = sum(1.0 / (1.0 + (sigma * c / rows) ** 2) for c in cells) / len(cells)
    narrow = NARROW_SHARE if len(features) <= MOST_CHOSEN else LEAST_SHARE
    return max(NUMBER_SHARE * heard, narrow, least)


def _bin_cells(config: MomentsConfig, schema: Schema, label: int | None, rows: int) -> int:
    """Equal cells of a number that is cut into bins: narrow ones, unless they would drown.

    Each cell has its own noise, so that many narrow ones have more of it in a wide bin than one wide
    cell has. They are kept where the noise of a whole histogram (total variation) stays small.
    """
    features = features_of(schema, label, is_binned=True, parts=FINE_CELLS)
    cells = [f.counted for f in features if f.is_levels and f.edges is not None]
    if not cells:
        return FINE_CELLS
    step = math.sqrt(2.0) if Neighbours.REPLACE_ONE in schema.reach.steps else 1.0
    columns = sum(not f.is_flag for f in features) + 1
    sigma = step * math.sqrt(columns / ROUGH_SHARE) / rough_mu(config)
    error = sigma * sum(cells) / len(cells) / (math.sqrt(2.0 * math.pi) * rows)
    return FINE_CELLS if error <= LOUD_CELLS else COARSE_CELLS


def _score_cells(config: MomentsConfig, schema: Schema, label: int | None, rows: int) -> int:
    """Equal cells of a number: more, the less noise a histogram has."""
    columns = schema.width - (label is not None)
    sigma = math.sqrt(2.0 * (columns + 1) / 0.4) / rough_mu(config)
    return MOST_SCORE_CELLS if MOST_SCORE_CELLS * sigma <= QUIET_CELL * rows else SCORE_CELLS


def size_of(config: MomentsConfig, schema: Schema, decided: Design, gram: BlockGram) -> Size:
    """At its peak it sums the Gram, or it holds the model and draws rows."""
    entries, histograms = sum(gram.parts), sum(decided.cells) + sum(decided.pooled_cells)
    latent = decided.widest
    room = sizes.synthetic_room(
        schema,
        asked=config.synthetic_rows,
        expected=config.expected_rows,
        encoded=latent,
        entries=entries + histograms,
    )
    chunk = max(BLOCK_ROWS, min(room.rows, BLOCK_VALUES // latent))
    matrices = MATRICES * max(gram.blocks) ** 2 + KEPT_MATRICES * sum(w * w for w in gram.blocks)
    drawing = FLOAT * (3 * entries + matrices + LATENT * chunk * latent)
    work = Work(
        passes=3 if decided.chosen is None else 4,
        products=sum(w * w for w in gram.blocks),
        drawn=max(room.rows, BLOCK_ROWS) * schema.width,
        solved=SOLVED * sum(w**3 for w in gram.blocks),
    )
    seconds = work.seconds(schema, config.expected_rows)
    return room.size(drawing=drawing, arrays=FLOAT * (entries + histograms), seconds=seconds)
