"""`pyarrow.compute`, loaded by its first use: to open a table of numbers needs none of it.

Its import makes a Python function of every kernel, and takes a tenth of a release's start. It stands
among the imports of `prepared`, so that one which fails is found before a charge.
"""

from typing import Any


class _Compute:
    """The module's functions."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  (pyarrow has no types)
        import pyarrow.compute  # noqa: PLC0415 - see above

        return getattr(pyarrow.compute, name)


pc: Any = _Compute()
