"""The pictures of any release: made when it is published, and again from its folder.

A picture is for people and is no part of the promise. So a release that was paid for is never lost for
one that cannot be made: it is published without pictures.
"""

from dataclasses import replace
from typing import Any

from adumbra.errors import InvalidInput
from adumbra.mechanisms.base import Method, Published, Settled
from adumbra.mechanisms.methods import config_of, method_named
from adumbra.postprocess.pictures import NOTHING, Pictures
from adumbra.release.artifact import Release


def pictures_of(method: Method[Any, Any], settled: Settled[Any, Any], published: Published) -> Pictures:
    """What the method shows of released numbers; nothing where it fails, since it is paid for."""
    if method.pictures is None:
        return NOTHING
    try:
        return method.pictures(settled, published)
    except Exception:  # noqa: BLE001 - see above; tests call `method.pictures` itself
        return NOTHING


def pictures_of_release(release: Release) -> Pictures:
    """The same from a folder: the card holds config and schema, and these settle the rest."""
    card = release.card
    try:
        method = method_named(card["method"]["name"].split(" ", maxsplit=1)[0])
        schema = release.schema
        if (
            schema.items is not None
        ):  # a path on a stranger's card is not opened; the table has the names
            schema = replace(schema, items=replace(schema.items, dictionary=None))
        settled = method.settle(config_of(method.name, card["method"]["config"]), schema)
    except InvalidInput:  # a card of another version
        return NOTHING
    tables = {name: release.tables[name] for name in release.tables} if method.name == "top-k" else {}
    return pictures_of(method, settled, Published(arrays=release.arrays, tables=tables))
