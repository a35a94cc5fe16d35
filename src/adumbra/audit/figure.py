"""The figure of an audit: claimed, exact and proven epsilon, one line a case."""

from pathlib import Path

from adumbra.audit.attack import Attack
from adumbra.errors import require

SUFFIXES = (".svg", ".png", ".pdf")


def require_place(path: Path) -> None:
    """Refuse a name that no figure can have before the attacks begin."""
    require(path.suffix in SUFFIXES, f"figure={path}: must end in one of {', '.join(SUFFIXES)}")
    require(path.absolute().parent.is_dir(), f"figure={path}: its folder does not exist; make it first")


def draw_attacks(results: list[Attack], path: Path) -> None:
    """Write claimed, exact and proven epsilon of each attack; the format follows the name's ending."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - heavy, and wanted with --figure only

    require_place(path)
    require(bool(results), "figure: nothing was attacked; choose a method that has cases")
    figure = Figure(figsize=(7.0, 0.8 + 0.24 * len(results)), layout="constrained")
    axes = figure.add_subplot()
    places = range(len(results), 0, -1)
    claimed = [one.epsilon_claimed for one in results]
    axes.hlines(places, 0, claimed, color="#d5d8dc", linewidth=5)
    axes.plot(claimed, places, "|", color="#1b4f72", markersize=11, label="claimed")
    axes.plot([one.exact_epsilon for one in results], places, "D", color="#1b4f72", markersize=4,
              markerfacecolor="none", label="exact for this pair of tables")  # fmt: skip
    axes.plot([one.epsilon_lower for one in results], places, "o", color="#b03a2e", markersize=4,
              label="proven by attack")  # fmt: skip
    axes.set_yticks(list(places), [one.case for one in results], fontsize=8)
    axes.set_xlabel("epsilon")
    axes.set_xlim(left=0)
    axes.set_ylim(0.3, len(results) + 0.7)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=3, frameon=False, fontsize=8)
    figure.savefig(path, bbox_inches="tight")  # the longest name is wider than the layout gives it
