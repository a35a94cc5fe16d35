"""The list of methods: the one place that names them all.

Command line, documentation and dispatch read it. To add a method, write its package and add it here; see
docs/decisions/0013-list-of-methods.md for why this is a typed tuple and not a registry of names.

Pictures of any release are made here too, when it is published and again from its folder. They are for
people and no part of the promise: a release that was paid for is published without the ones that fail.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from adumbra.errors import InvalidInput
from adumbra.mechanisms.answers import ANSWERS
from adumbra.mechanisms.base import Config, Method, Plan, Published, Settled, plan_of
from adumbra.mechanisms.bounds import BOUNDS
from adumbra.mechanisms.lda import LDA
from adumbra.mechanisms.moments import MOMENTS
from adumbra.mechanisms.pca import PCA
from adumbra.mechanisms.projection import DPPRO, JL_LAPLACE
from adumbra.mechanisms.ron_gauss import RON_GAUSS
from adumbra.mechanisms.topk import TOP_K
from adumbra.postprocess.pictures import NOTHING, Pictures
from adumbra.release.artifact import Release
from adumbra.schema.schema import Schema

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


def pictures_of(method: Method[Any, Any], settled: Settled[Any, Any], published: Published) -> Pictures:
    """What the method shows and says of released numbers; nothing where it fails: it is paid for."""
    shown, steps = NOTHING, method.steps()
    if steps.pictures is not None:
        with suppress(Exception):  # see above; tests call `pictures` itself
            shown = steps.pictures(settled, published)
    if steps.words is None:
        return shown
    with suppress(Exception):
        shown = replace(shown, words=steps.words(settled, published))
    return shown


def pictures_of_release(release: Release) -> Pictures:
    """The same from a folder: the card holds config and schema, and these settle the rest."""
    card = release.card
    try:
        method = method_named(card["method"]["name"].split(" ", maxsplit=1)[0])
        schema = release.schema
        if (
            schema.items is not None
        ):  # a path on a card from outside is not opened; the table has the names
            schema = replace(schema, items=replace(schema.items, dictionary=None))
        settled = method.settle(config_of(method.name, card["method"]["config"]), schema)
    except InvalidInput:  # a card of another version
        return NOTHING
    tables = {name: release.tables[name] for name in release.tables} if method.name == "top-k" else {}
    return pictures_of(method, settled, Published(arrays=release.arrays, tables=tables))


def plan(config: Config, schema: Schema | str | Path) -> Plan:
    """Cost, noise and expected error of a release; touches no data and costs nothing.

    Parameters
    ----------
    config : the config of a method, such as `MomentsConfig(epsilon=1.0)`
    schema : the declared columns, unit and relation: a `Schema`, or the path of a schema file

    Returns
    -------
    Plan with `guarantee`, `noise`, `expected` (errors by name), `notes` (sentences) and `details`.

    Raises
    ------
    InvalidInput, if config and schema do not fit; its subclass `Unsupported`, if there is no proof.
    """
    return plan_of(method_of(config), config, as_schema(schema))


def as_schema(schema: object) -> Schema:
    """A schema, or the one in the file at a path."""
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, str | Path):
        return Schema.read(schema)
    raise InvalidInput(f"schema of type {type(schema).__name__}: give a Schema, or the path of a file")
