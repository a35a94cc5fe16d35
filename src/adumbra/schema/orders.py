"""Declared orders of two columns: what they say, and every rule that they break."""

from collections.abc import Sequence
from dataclasses import dataclass

from adumbra.schema.column import Declaration


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A declared constraint: column `lower` never exceeds column `upper` in a row.

    It is public knowledge and is never checked against rows: synthetic ones are made to keep it.
    """

    lower: str
    upper: str

    def facts(self) -> dict[str, str]:
        """The declared fields."""
        return {"lower": self.lower, "upper": self.upper}


def order_faults(
    orders: Sequence[Order], columns: Sequence[Declaration], label: str | None
) -> list[tuple[int, str]]:
    """Every broken rule, with the place of its constraint."""
    known = {column.name: column for column in columns}
    found = []
    for place, order in enumerate(orders):
        pair = f"constraint {order.lower!r} <= {order.upper!r}"
        ends = [known.get(name) for name in (order.lower, order.upper)]
        kinds = {end.kind for end in ends if end is not None}
        if any(end is None for end in ends):
            found.append((place, f"{pair}: both must be declared columns"))
        elif not all(end is not None and end.kind.has_bounds for end in ends):
            found.append((place, f"{pair}: both must be numbers, or both dates"))
        elif len(kinds) > 1 and any(kind.is_time for kind in kinds):
            found.append((place, f"{pair}: a date is compared with dates alone; give both one kind"))
        elif label in (order.lower, order.upper):
            found.append((place, f"{pair}: the label is drawn first and cannot be moved; leave it out"))
        elif not _can_hold(ends[0], ends[1]):
            found.append((place, f"{pair}: the bounds allow no such row; correct them"))
    for place in range(len(orders)):
        if _closes_a_circle(orders[: place + 1]):
            order = orders[place]
            rule = "closes a circle with the constraints before it; remove one of them"
            found.append((place, f"constraint {order.lower!r} <= {order.upper!r}: {rule}"))
            break
    return found


def _can_hold(lower: Declaration | None, upper: Declaration | None) -> bool:
    """Whether the smallest value of the one is at most the largest of the other."""
    if lower is None or upper is None or lower.lower is None or upper.upper is None:
        return False
    return lower.lower <= upper.upper


def _closes_a_circle(orders: Sequence[Order]) -> bool:
    """Whether the upper end of the last constraint leads back to its lower end."""
    reached, last = {orders[-1].upper}, orders[-1].lower
    for _ in orders:
        reached |= {order.upper for order in orders[:-1] if order.lower in reached}
    return last in reached
