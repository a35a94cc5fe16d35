"""How large and how small the public numbers of a release may be.

Floats reach from 1e-308 to 1e308, but methods work with squares and fourth powers of bounds and norms.
A number outside the limits here would overflow after the charge. It is public, so it is refused before.
"""

from adumbra.errors import require
from adumbra.schema.schema import Schema

# Their fourth powers, times the rows and columns that fit on a machine, are floats.
SMALLEST, LARGEST = 1e-60, 1e60
REMEDY = "give the column another unit (a thousand times as large, say)"


def require_magnitudes(schema: Schema, row_norm: float | None = None) -> None:
    """Refuse bounds and a row norm that no method can work with; looks at no row."""
    for column in schema.columns:
        if not column.is_numeric:
            continue
        lower, upper = column.limits
        largest, width = max(abs(lower), abs(upper)), upper - lower
        require(
            largest <= LARGEST,
            f"column {column.name}: bounds {lower}, {upper}: must lie between -1e60 and 1e60; {REMEDY}",
        )
        require(
            width == 0 or width >= SMALLEST,
            f"column {column.name}: bounds {lower}, {upper}: must lie 1e-60 apart; {REMEDY}",
        )
    require(
        row_norm is None or SMALLEST <= row_norm <= LARGEST,
        f"row_norm={row_norm}: must lie between 1e-60 and 1e60",
    )
