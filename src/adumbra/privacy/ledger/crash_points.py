"""The named places between two durable steps.

`checkpoint` does nothing. The crash tests put a function in its place that kills the process there;
there is no setting, variable or argument that could do it in production.
"""


def checkpoint(name: str) -> None:
    """Stand at a named place of the protocol."""
