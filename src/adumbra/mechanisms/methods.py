"""The list of methods: the one place that names them all.

Command line, documentation and dispatch read it. To add a method, write its package and add it here; see
docs/decisions/0013-list-of-methods.md for why this is a typed tuple and not a registry of names. What a
method does is imported by whoever settles it.
"""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adumbra.errors import InvalidInput, require
from adumbra.mechanisms.answers import ANSWERS
from adumbra.mechanisms.bounds import BOUNDS
from adumbra.mechanisms.lda import LDA
from adumbra.mechanisms.method import Method
from adumbra.mechanisms.moments import MOMENTS
from adumbra.mechanisms.pca import PCA
from adumbra.mechanisms.projection import DPPRO, JL_LAPLACE
from adumbra.mechanisms.ron_gauss import RON_GAUSS
from adumbra.mechanisms.topk import TOP_K
from adumbra.schema.schema import Schema

if TYPE_CHECKING:
    from adumbra.mechanisms.base import Config, Plan

METHODS: tuple[Method[Any, Any], ...] = (
    ANSWERS, BOUNDS, DPPRO, JL_LAPLACE, LDA, MOMENTS, PCA, RON_GAUSS, TOP_K,
)  # fmt: skip

OLDER_NAMES = {  # of fields on cards that were made before 0.1
    "moments": {"sample_rows": "synthetic_rows", "rows_guess": "expected_rows"},
    "top-k": {"method": "algorithm"},
}


def method_of(config: object) -> Method[Any, Any]:
    """The method that a config belongs to."""
    for method in METHODS:
        if type(config) is method.config:
            return method
    known = ", ".join(method.config.__name__ for method in METHODS)
    raise InvalidInput(f"config of type {type(config).__name__}: not a config; use one of {known}")


def method_named(name: str) -> Method[Any, Any]:
    """The method of a name of the command line."""
    for method in METHODS:
        if method.name == name:
            return method
    known = ", ".join(method.name for method in METHODS)
    raise InvalidInput(f"method={name}: unknown; choose one of {known}")


def config_of(name: str, facts: Mapping[str, Any]) -> Any:  # noqa: ANN401  (a config of the method)
    """The config that a card prints under a method's name; cards before 0.1 use older field names."""
    method = method_named(name.split(" ", maxsplit=1)[0])  # top-k adds its algorithm
    older = OLDER_NAMES.get(method.name, {})
    named = {older.get(field, field): value for field, value in facts.items()}
    for unknown in sorted(named.keys() - {field.name for field in fields(method.config)}):
        rule = "is no option of it here; a later version may have made the card"
        raise InvalidInput(f"method={method.name}: {unknown!a} {rule}")
    return method.config(**named)


def plan(config: "Config", schema: Schema | str | Path, *, threads: int | None = None) -> "Plan":
    """Cost, noise and expected error of a release; touches no data and costs nothing.

    Parameters
    ----------
    config : the config of a method, such as `MomentsConfig(epsilon=1.0)`
    schema : the declared columns, unit and relation: a `Schema`, or the path of a schema file
    threads : of the engine that will run it, for the memory that it needs; all cores unless given

    Returns
    -------
    Plan with `guarantee`, `noise`, `expected` (errors by name), `notes` (sentences) and `details`.

    Raises
    ------
    InvalidInput, if config and schema do not fit; its subclass `Unsupported`, if there is no proof.
    """
    from adumbra.mechanisms.base import plan_of  # noqa: PLC0415 - a list of methods needs none of it
    from adumbra.mechanisms.sizes import on_threads  # noqa: PLC0415

    require(threads is None or threads >= 1, f"threads={threads}: must be at least 1")
    with on_threads(threads):
        return plan_of(method_of(config), config, as_schema(schema))


def as_schema(schema: object) -> Schema:
    """A schema, or the one in the file at a path."""
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, str | Path):
        return Schema.read(schema)
    raise InvalidInput(f"schema of type {type(schema).__name__}: give a Schema, or the path of a file")
