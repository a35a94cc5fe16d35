"""Pictures of any release, when it is published and again from its folder.

They are for people and no part of the promise: a release that was paid for is published without the
ones that fail.
"""

from contextlib import suppress
from dataclasses import replace
from typing import Any

from adumbra.errors import InvalidInput
from adumbra.mechanisms.base import Published, Settled
from adumbra.mechanisms.method import Method
from adumbra.mechanisms.methods import config_of, method_named
from adumbra.postprocess.pictures import NOTHING, Pictures
from adumbra.release.artifact import Release


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
