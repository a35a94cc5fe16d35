"""Which algorithm `auto` is: a public rule of epsilon, k and the number of rows; no row is looked at.

    epsilon n >= 18 k^2   joint (pure) or gumbel (under delta): the columns alone, without counts
    else                  tps-refine (pure) or frefirst (under delta), with counts

A selection has noise of about k / epsilon on counts that are some n / k apart, noisy counts have noise
that does not grow with k but with the items of a row. 18 was chosen by looking at bms_webview1 and
kosarak_head for k = 1 to 200; retail and tafeng were looked at afterwards (docs/explanation/top-k.md).
Whoever asks for counts, a length or a longest length asks for an algorithm that makes counts.
"""

from dataclasses import replace

from adumbra.mechanisms.topk.config import Algorithm, TopKConfig
from adumbra.schema.schema import Schema

FEW = 18.0  # times k^2: epsilon n above which a selection of k columns beats noisy counts


def settled_config(config: TopKConfig, schema: Schema) -> TopKConfig:
    """The config with the algorithm that runs by its name."""
    if config.algorithm != Algorithm.AUTO:
        return config
    return replace(config, algorithm=_best(config, schema).value)


def _best(config: TopKConfig, schema: Schema) -> Algorithm:
    rows = schema.rows or config.expected_rows
    if rows is None or config.wants_counts:
        return config.chosen
    if config.epsilon / schema.reach.rows * rows < FEW * config.k**2:
        return config.chosen
    return Algorithm.JOINT if config.is_pure else Algorithm.GUMBEL


def choice_notes(asked: TopKConfig, settled: TopKConfig) -> tuple[str, ...]:
    """What `auto` chose, and how to have counts where it makes none."""
    if asked.algorithm != Algorithm.AUTO or settled.chosen is asked.chosen:
        return ()
    rule = f"epsilon times the rows is at least {FEW:g} k^2"
    gain = "it finds more of the columns than noisy counts do"
    return (f"auto is {settled.chosen} here, as {rule}: {gain}; algorithm={asked.chosen} has counts.",)
