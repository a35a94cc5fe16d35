"""What several commands share: their flags, and `--option name=value` read into a frozen config."""

import dataclasses
import difflib
import json
import os
import re
import sys
import types
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adumbra.errors import InvalidInput, Unsupported, require, visible

if TYPE_CHECKING:
    from adumbra.mechanisms.base import Config

BUDGET_FLAGS = ("epsilon", "delta")
OTHER_FLAGS = (
    *("schema", "ledger", "population", "out", "method", "before_dp", "about", "data"),
    *("engine", "scheduler", "workers", "threads", "parts", "memory"),
)


def make_config(method: str, epsilon: float, delta: float | None, options: list[str]) -> "Config":
    """Build a method's config; every unknown or unreadable option is named at once.

    Without a delta the method's own default holds, as in Python.
    """
    from adumbra.mechanisms.methods import method_named

    kind = method_named(method).config
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    values: dict[str, object] = {"epsilon": epsilon}
    if delta is not None:
        values["delta"] = delta
    faults = []
    given: set[str] = set()
    for option in options:
        name, equals, text = option.partition("=")
        name = name.strip().replace("-", "_")
        fault = _name_fault(method, name, sorted(fields), valued=bool(equals), again=name in given)
        given.add(name)
        if fault is not None:
            faults.append(fault)
            continue
        try:
            values[name] = _parse(text.strip(), hints[name])
        except ValueError:
            faults.append(f"option {name}={text}: must be {_describe(hints[name])}")
    missing = [
        name
        for name, field in fields.items()
        if name not in values
        and field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
    ]
    adding = {name: "--delta 1e-6" if name == "delta" else f"-o {name}=..." for name in missing}
    faults += [f"option {name}: is needed for method={method}; add {adding[name]}" for name in missing]
    if faults:
        raise InvalidInput("\n".join(faults))
    return typing.cast("Config", kind(**values))


@contextmanager
def spelled_as_options(method: str) -> Iterator[None]:
    """Messages speak Python's names; say how the command line spells those they tell to give."""
    try:
        yield
    except InvalidInput as problem:
        from adumbra.mechanisms.methods import METHODS

        kinds = [one.config for one in METHODS if one.name == method]
        fields = [field.name for kind in kinds for field in dataclasses.fields(kind)]
        named = [
            name
            for name in fields
            if name not in BUDGET_FLAGS
            and f"option {name}" not in str(problem)
            and re.search(rf"(?<![\w.]){name}(?:=|\b)" if "_" in name else rf"^{name}=", str(problem))
        ]
        if not named or type(problem) not in (InvalidInput, Unsupported):
            raise
        flags = " or ".join(f"-o {name}=..." for name in named)
        raise type(problem)(f"{problem} ({flags})") from problem


def make_about(words: list[str]) -> dict[str, object]:
    """What the card shall say of a release, from `--about name=value`."""
    from adumbra.release.card import require_about

    said = named_texts(words)
    require("population" not in said, "about=population: has a flag of its own; give --population")
    require_about(said)
    return dict(said)


def named_texts(words: list[str]) -> dict[str, str]:
    """What `--about name=value` says, by name."""
    said: dict[str, str] = {}
    for word in words:
        name, equals, text = word.partition("=")
        name = name.strip().replace("-", "_")
        require(bool(equals), f"about={word}: needs a value; write --about {name}=...")
        require(name not in said, f"about={name}: is given twice; give it once")
        said[name] = text.strip()
    return said


def describe_options(config: type) -> list[tuple[str, str, str, str]]:
    """Name, type, default and meaning of every option of a method's config."""
    from adumbra.mechanisms.fields import CHOICES, HELP

    hints = typing.get_type_hints(config)
    rows = []
    for field in dataclasses.fields(config):
        default = "required" if field.default is dataclasses.MISSING else str(field.default)
        what = " or ".join(field.metadata[CHOICES]) or _describe(hints[field.name])
        rows.append((field.name, what, default, field.metadata[HELP]))
    return rows


def _name_fault(method: str, name: str, known: list[str], *, valued: bool, again: bool) -> str | None:
    """Why an option of this name cannot be taken; two ways to say one thing could contradict."""
    if name in BUDGET_FLAGS or (name in OTHER_FLAGS and name not in known):
        return f"option {name}: has a flag of its own; give --{name.replace('_', '-')}"
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
        return f"option {name}: is not an option of method={method} (write name=value); {hint}"
    if not valued:
        return f"option {name}: needs a value; write -o {name}=..."
    return f"option {name}: is given twice; give it once" if again else None


def _parse(text: str, hint: object) -> object:
    """Read one value; raises ValueError where the text does not fit the type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _parse_any(text, arguments)
    if origin is tuple:
        return tuple(_parse(part.strip(), arguments[0]) for part in text.split(",") if part.strip())
    if origin is typing.Literal:
        return _chosen(text, {str(argument): argument for argument in arguments})
    if hint is bool:
        return _chosen(text.lower(), {"true": True, "false": False})
    if hint is type(None):
        return _chosen(text.lower(), {"none": None})
    return typing.cast("type[int | float | str | Enum]", hint)(text)


def _parse_any(text: str, hints: tuple[object, ...]) -> object:
    """The first type of a union that the text fits."""
    for hint in hints:
        try:
            return _parse(text, hint)
        except ValueError:
            continue
    raise ValueError(text)


def _chosen(text: str, choices: dict[str, object]) -> object:
    if text not in choices:
        raise ValueError(text)
    return choices[text]


def _describe(hint: object) -> str:
    """A type in words."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        return " or ".join(str(member) for member in hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_describe(argument) for argument in arguments)
    if origin is typing.Literal:
        return " or ".join(map(str, arguments))
    if origin is tuple:
        return f"a comma-separated list of {_describe(arguments[0]).removeprefix('a ')}s"
    names = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
    names[type(None)] = "none"
    return names.get(typing.cast("type", hint), str(hint))


if TYPE_CHECKING:
    from adumbra.attestation.signers import Signer
    from adumbra.privacy.ledger import Ledger
    from adumbra.schema.schema import Schema


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Header = Annotated[
    bool,
    typer.Option(
        "--header",
        help="Declare that the first line of a CSV file holds column names, which are public; "
        "the same as header = true in the schema.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")]


def read_schema(path: Path, *, header: bool) -> "Schema":
    """The schema file, with what `--header` declares."""
    from dataclasses import replace

    from adumbra.schema.schema import Schema

    declared = Schema.read(path)
    if not header:
        return declared
    rule = "the schema says header = false; correct the schema or leave the flag out"
    require(declared.header is not False, f"header: {rule}")
    return replace(declared, header=True)


def print_json(facts: object) -> None:
    """What `--json` prints."""
    typer.echo(json.dumps(facts, indent=2))


def say(sentence: str, facts: dict[str, Any], as_json: bool) -> None:
    """A sentence for people, or its facts for machines."""
    print_json(facts) if as_json else typer.echo(visible(sentence, keep="\n"))


def require_new_file(name: str, path: Path, *, force: bool) -> None:
    """Refuse, before any work is done, a file that exists (unless forced) or cannot be made."""
    folder = path.absolute().parent
    require(folder.is_dir(), f"{name}={path}: its folder does not exist; make it first")
    require(
        os.access(folder, os.W_OK), f"{name}={path}: its folder cannot be written to; choose another"
    )
    require(not path.is_dir(), f"{name}={path}: is a folder; give the name of a file")
    require(
        force or not os.path.lexists(path),
        f"{name}={path}: exists already; choose another name or give --force",
    )


# What a command says of data besides its plan: columns that stay out, a first line that looks odd.
SHOWN_NAMES, LONGEST_NAME = 8, 60  # of undeclared columns
LOOKS_LIKE_A_ROW = (
    "warning: some of the column names in the first line look like numbers or dates; "
    "if that line is a row, it would be published: declare header = false and list the columns"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """Columns of the data that no release reads; their names only where they are public."""

    count: int
    names: tuple[str, ...] | None
    warns: bool = False  # the first line was declared public and looks like a row

    def facts(self) -> dict[str, object]:
        """For `--json`."""
        names = None if self.names is None else list(self.names)
        return {"undeclared": names, "undeclared_count": self.count}

    def words(self) -> str:
        """How many columns stay out, and the first of them by name."""
        columns = "1 column" if self.count == 1 else f"{self.count} columns"
        verb = "is not declared and stays" if self.count == 1 else "are not declared and stay"
        if self.names is None:
            return f"{columns} of the data {verb} out"
        listed = ", ".join(visible(name)[:LONGEST_NAME] for name in self.names[:SHOWN_NAMES])
        more = f" and {self.count - SHOWN_NAMES} more" if self.count > SHOWN_NAMES else ""
        return f"{columns} of the data {verb} out: {listed}{more}"


def undeclared(data: str, schema: "Schema") -> Unread:
    """Columns of the data that the schema does not name.

    Names are public in Parquet, and in CSV where the schema says `header = true`; else the first line
    may be a row: its cells are counted, and not compared: which of them are alike is private.
    """
    from collections import Counter

    from adumbra.data.csv_header import look_like_values
    from adumbra.data.opening import fields_by, is_csv

    known = {*schema.names, *(one.name for one in schema.derived)}
    known |= set() if schema.items is None else {schema.items.column}
    known |= set() if schema.person is None else {schema.person.column}  # read, and never released
    described = fields_by(data, schema)
    files = [fields for where, fields in described if not where.endswith(".dat'")]
    if is_csv(data) and schema.header is not True:
        spare = (len(fields) - len(known & {name for name, _ in fields}) for fields in files)
        return Unread(count=max(spare), names=None)
    out: Counter[str] = Counter()
    for fields in files:
        out |= Counter(name for name, _ in fields if name not in known)
    warns = is_csv(data) and any(look_like_values(name for name, _ in fields) for fields in files)
    return Unread(count=out.total(), names=tuple(out), warns=warns)


def say_notes(unread: Unread, *, json: bool) -> None:
    """Print what stays out, unless JSON says it, and a warning on stderr."""
    if unread.count and not json:
        typer.echo(unread.words())
    if unread.warns:
        typer.echo(LOOKS_LIKE_A_ROW, err=True)


def warn_of_values(names: list[str]) -> None:
    """Warn, on stderr, of declared names that look like a row; quotes nothing."""
    from adumbra.data.csv_header import look_like_values

    if look_like_values(names):
        typer.echo(LOOKS_LIKE_A_ROW, err=True)


def fit_words(data: str, schema: "Schema") -> str:
    """What was compared with the data, and what cannot be without reading cells."""
    from adumbra.data.opening import locate

    kind = locate(data).kind
    names, stores = "the first line holds the declared names", "CSV files store no types"
    if schema.header is False:
        names = "columns are taken in the order of the schema and their number was not compared"
    if kind == "sql":
        names, stores = "the query has the declared names", "types of a query are not asked for"
    elif kind == "jsonl":
        names, stores = "names stand in the rows and were not compared", "JSON lines store no types"
    elif kind != "csv":
        return "names and types fit the data"
    unknown = f"{stores}, so kinds were not compared"
    return f"{names}; {unknown}: a cell that cannot be read as its kind becomes the missing value"


def open_signing_key(path: Path | None) -> "Signer | None":
    """The key that `--key` names; asks for a passphrase at the terminal if it needs one."""
    from adumbra.attestation.signers import open_key

    if path is None:
        return None

    def ask() -> str:
        return str(typer.prompt(f"Passphrase of {path}", hide_input=True, err=True))

    return open_key(path, ask if sys.stdin.isatty() else None)


def operated(ledger: str, operator: Path) -> "Ledger":
    """The ledger, open for an operator's acts."""
    from adumbra.privacy.ledger import open_ledger

    return open_ledger(ledger, operator=open_signing_key(operator))
