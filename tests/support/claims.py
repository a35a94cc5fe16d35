"""The cases of an audit, made once per process: their tables hold hundreds of megabytes."""

from functools import cache

from adumbra.audit.cases import all_cases
from adumbra.audit.pairs import Case


@cache
def claims(epsilon: float) -> tuple[Case, ...]:
    """Every case at this epsilon. They are frozen; a test that changes one makes another."""
    return tuple(all_cases(epsilon))
