"""Fields of a config: their help text, and the type they are declared with, checked before any rule.

A number of numpy's becomes Python's own, so that configs compare, print and go into a card alike.
"""

import dataclasses
import types
import typing
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from adumbra.errors import InvalidInput, require
from adumbra.privacy.guarantee import require_budget
from adumbra.schema.table import MAX_ROWS

HELP = "help"  # key of a field's metadata
CHOICES = "choices"  # key of the words that a text field takes

# Help texts that several methods share.
EPSILON = "Privacy budget of this release (`--epsilon`)."
DELTA = "0: pure epsilon, Laplace noise. Above 0: Gaussian noise (`--delta`)."
ROW_NORM = "Row unit: longer encoded rows are scaled down to this length. none: the schema's own bound."
CLIP_TAIL = "Expected share of rows shortened by the clip after the projection. Smaller: more noise."
MATRIX_SEED = "Public seed of the projection; anyone can rebuild it."
SAMPLE_SEED = "Public seed for drawing synthetic rows from the noisy model."
SYNTHETIC_ROWS = "Synthetic rows to draw. none: the public number of rows, or a noisy one."
EXPECTED_ROWS = "Public guess of the number of rows, where the schema declares none."

LARGEST = 2**53  # of a whole number in a card or in the ledger's log
MOST_SYNTHETIC = 10**9  # rows that a release may be asked to draw

TEXTS = tuple[str, ...]  # several texts, such as names of columns
WORDS = {int: "a whole number", float: "a number", bool: "True or False", str: "a text"}


def option(help: str, *, default: Any = dataclasses.MISSING, choices: tuple[str, ...] = ()) -> Any:  # noqa: A002, ANN401  (as `dataclasses.field`)
    """A field of a config with its help text; `choices` are the words that a text field takes."""
    return dataclasses.field(default=default, metadata={HELP: help, CHOICES: choices})


def settle_fields(config: object) -> None:
    """Check every field of a config against its declared type, then what methods share by name.

    Called first in `__post_init__`.
    """
    for name, kinds in _declared(type(config)).items():
        value = getattr(config, name)
        if (value is None or isinstance(value, str)) and value in kinds:
            continue
        plain = [kind for kind in kinds if isinstance(kind, type)]
        settled = _texts(name, value) if TEXTS in kinds else _settled(name, value, plain, kinds)
        object.__setattr__(config, name, settled)
    _require_shared(config)


def config_facts(config: Any) -> dict[str, object]:  # noqa: ANN401  (any dataclass)
    """Every public parameter by name, for the card and the ledger."""
    facts = {one.name: getattr(config, one.name) for one in dataclasses.fields(config)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in facts.items()}


def _require_shared(config: object) -> None:
    """The rules of budget, seeds and numbers of rows, under the names they have in every config."""
    given = {name: getattr(config, name) for name in _declared(type(config))}
    if "epsilon" in given:
        require_budget(given["epsilon"], given["delta"])
    for name, most in (("synthetic_rows", MOST_SYNTHETIC), ("expected_rows", MAX_ROWS)):
        value = given.get(name)
        require(value is None or value >= 1, f"{name}={value}: must be at least 1")
        require(value is None or value <= most, f"{name}={value}: must be at most {most}")
    for name in ("matrix_seed", "sample_seed"):
        require(given.get(name, 0) >= 0, f"{name}={given.get(name)}: must be 0 or above")


def refuse_idle(config: Any, idle: Mapping[str, str]) -> None:  # noqa: ANN401  (a config)
    """Refuse every option that is set and would change nothing; `idle` says in which case each is so.

    Called by `settle`, so that a plan refuses it too. An option at its default was not asked for.
    """
    defaults = {field.name: field.default for field in dataclasses.fields(config)}
    faults = [
        f"{name}={getattr(config, name)}: has no effect {case}; leave it out"
        for name, case in idle.items()
        if getattr(config, name) != defaults[name]
    ]
    if faults:
        raise InvalidInput("\n".join(faults))


def unused_guess(config: Any, rows: int | None) -> tuple[str, ...]:  # noqa: ANN401  (a config)
    """The note on a guess of the number of rows where the number itself is public.

    It is no refusal: the same options plan without data, where the guess counts, and release with them.
    """
    if rows is None or config.expected_rows is None:
        return ()
    return (f"expected_rows={config.expected_rows} is not used: the number of rows is public ({rows}).",)


def _texts(name: str, value: object) -> tuple[str, ...]:
    """Several texts, as a tuple; a card holds a list of them."""
    is_listed = isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
    require(is_listed, f"{name}={value!r}: must be a list of texts")
    return tuple(value) if isinstance(value, list | tuple) else ()


def _settled(name: str, value: object, plain: list[type], kinds: tuple[object, ...]) -> object:
    """The value as one of the plain types, or a refusal that names them."""
    is_truth = type(value).__name__ in ("bool", "bool_")
    for kind in plain:
        if kind is bool and is_truth:
            return bool(value)
        if kind is int and isinstance(value, Integral) and not is_truth:
            if abs(int(value)) >= LARGEST:
                raise InvalidInput(f"{name}={value}: must lie below 2^53, which JSON holds exactly")
            return int(value)
        if kind is float and isinstance(value, Real) and not is_truth:
            return float(value) if not isinstance(value, int | float) else value
        if kind is str and isinstance(value, str):
            return value
    words = [WORDS[kind] if isinstance(kind, type) else str(kind) for kind in kinds]
    rule = " or ".join(words) if plain else f"one of {', '.join(words)}"
    raise InvalidInput(f"{name}={value!r}: must be {rule}")


def _declared(kind: Any) -> dict[str, tuple[object, ...]]:  # noqa: ANN401  (a class of dataclass)
    """The types and words that each field allows."""
    hints = typing.get_type_hints(kind)
    found = {}
    for field in dataclasses.fields(kind):
        hint = hints[field.name]
        parts = (
            typing.get_args(hint)
            if typing.get_origin(hint) in (types.UnionType, typing.Union)
            else (hint,)
        )
        kinds: list[object] = []
        for part in parts:
            if typing.get_origin(part) is typing.Literal:
                kinds += typing.get_args(part)
            else:
                kinds.append(None if part is types.NoneType else part)
        found[field.name] = tuple(kinds)
    return found
