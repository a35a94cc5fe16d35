"""The picture of a top-k release, from its table."""

from adumbra.mechanisms.base import Published, Settled
from adumbra.mechanisms.topk.config import TopKConfig
from adumbra.mechanisms.topk.plan import Parts
from adumbra.postprocess.pictures import Bars, Pictures

SHOWN = 30
REACH = 1.96  # standard errors: 95 % of a normal law, and more than 93 % of a Laplace one


def pictures(settled: Settled[TopKConfig, Parts], published: Published) -> Pictures:
    """The k columns in rank order, with their noisy counts where the algorithm gives them."""
    table = published.tables["data"].slice(0, SHOWN)
    columns = table.to_pydict()
    if "count" not in columns:
        return Pictures()
    words = columns.get("name", [None] * table.num_rows)
    names = tuple(
        f"{item}: {word}" if word else f"item {item}"
        for item, word in zip(columns["item"], words, strict=True)
    )
    more = settled.config.k - table.num_rows
    rest = f" {more} more are in the table." if more > 0 else ""
    bars = Bars(
        title=f"The {settled.config.k} most frequent items",
        caption="Noisy counts of rows, in rank order; ± is 1.96 standard errors of the noise. Where the "
        f"noise picked the items, their counts lean upwards: ask a release with all counts.{rest}",
        names=names,
        values=tuple(float(count) for count in columns["count"]),
        reaches=tuple(REACH * float(error) for error in columns["standard_error"]),
    )
    return Pictures(bars=(bars,))


def words(settled: Settled[TopKConfig, Parts], _: Published) -> dict[str, str]:
    """What each table is."""
    return {
        "data": f"One row per item, by rank: the {settled.config.k} chosen as the most frequent. No row "
        "belongs to a person.",
        "counts": "One row per item of the universe, by its noisy count.",
    }
