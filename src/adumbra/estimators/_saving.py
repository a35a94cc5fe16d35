"""A fitted estimator as one safetensors file: released arrays and public facts, no code, no pickle.

The header holds the class, its parameters at the fit, the schema, the guarantee of all releases of the
object, and a SHA-256 over all of it and every array. The hash shows damage and careless edits; whoever
forges the whole file can compute it too, so take files from those whose arrays you would trust.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from adumbra.errors import InvalidInput, VerificationFailed, require
from adumbra.postprocess.decode import column_array
from adumbra.schema.facts import schema_of
from adumbra.schema.schema import Schema

FORMAT = "adumbra-estimator/1"
KEY = "adumbra"
FIELDS = {"format", "estimator", "params", "schema", "facts", "features", "guarantee", "sha256"}
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a fit keeps of its release; all of it is public."""

    params: Mapping[str, Any]  # of the constructor, as they were at the fit
    schema: Schema
    arrays: Arrays
    facts: Mapping[str, Any]


def write_estimator(path: Path, name: str, kept: Kept, said: Mapping[str, Any], *, force: bool) -> None:
    """Write one file; `said` is what the object adds: its features and its guarantee."""
    header = {
        "format": FORMAT,
        "estimator": name,
        "params": {key: _plain(key, value) for key, value in kept.params.items()},
        "schema": kept.schema.facts(),
        "facts": kept.facts,
        **said,
    }
    arrays = {key: np.ascontiguousarray(value) for key, value in kept.arrays.items()}
    header["sha256"] = _digest(header, arrays)
    raw = save(arrays, {KEY: _canonical(header)})
    try:
        with path.open("wb" if force else "xb") as file:
            file.write(raw)
    except FileExistsError:
        raise InvalidInput(f"path={path}: exists already; choose another or give force=True") from None


def read_estimator(path: Path, name: str) -> tuple[Kept, dict[str, Any]]:
    """Read one file of this class; refuses what is damaged, edited or of another kind."""
    try:
        raw = path.read_bytes()
    except (FileNotFoundError, IsADirectoryError):
        raise InvalidInput(f"path={path}: is not a file; give one that `save` wrote") from None
    header, arrays = _opened(path, raw)
    found = header.get("estimator")
    require(found == name, f"path={path}: holds a {found}, not a {name}; load it with that class")
    if header["sha256"] != _digest({k: v for k, v in header.items() if k != "sha256"}, arrays):
        raise VerificationFailed(f"{path}: its contents do not match its SHA-256; it was changed")
    try:
        schema = schema_of(header["schema"])
        params = {key: _read(key, value) for key, value in header["params"].items()}
    except (InvalidInput, AttributeError, KeyError, TypeError):
        raise _foreign(path) from None
    return Kept(params=params, schema=schema, arrays=arrays, facts=header["facts"]), header


def _opened(path: Path, raw: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of a safetensors file that `write_estimator` wrote."""
    try:
        arrays = load(raw)
        size = int.from_bytes(raw[:8], "little")
        header = json.loads(json.loads(raw[8 : 8 + size])["__metadata__"][KEY])
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError):
        raise _foreign(path) from None
    if not isinstance(header, dict) or set(header) != FIELDS or header["format"] != FORMAT:
        raise _foreign(path)
    return header, arrays


def _foreign(path: Path) -> VerificationFailed:
    return VerificationFailed(f"{path}: is not a file that `save` of an estimator wrote ({FORMAT})")


def _digest(header: Mapping[str, Any], arrays: Arrays) -> str:
    """Over the header and the name, type, shape and bytes of every array."""
    total = hashlib.sha256(_canonical(header).encode())
    for name in sorted(arrays):
        array = arrays[name]
        total.update(_canonical([name, array.dtype.str, list(array.shape)]).encode())
        total.update(array.tobytes())
    return total.hexdigest()


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _plain(name: str, value: object) -> object:
    """A parameter as JSON: numbers, words, lists of them, or a schema."""
    if isinstance(value, Schema):
        return {"schema": value.facts()}
    if hasattr(value, "tolist"):  # arrays, series and numpy's numbers
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(name, one) for one in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InvalidInput(
        f"{name} holds a {type(value).__name__}: only numbers and words can be saved; fit with those"
    )


def _read(name: str, value: Any) -> Any:  # noqa: ANN401  (JSON)
    if isinstance(value, dict):
        return schema_of(value["schema"])
    return tuple(value) if name == "bounds" and value is not None else value


def column_values(table: pa.Table, schema: Schema) -> NDArray[np.float64]:
    """A released table as numbers: level codes for categories, the code after the last for null."""
    declared = {column.name: column for column in schema.columns}
    values = []
    for name in table.column_names:
        given = table[name].combine_chunks()
        if pa.types.is_dictionary(given.type):
            given = given.indices.fill_null(len(declared[name].categories))
        values.append(given.to_numpy(zero_copy_only=False).astype(np.float64))
    return np.column_stack(values)


def column_table(values: NDArray[Any], schema: Schema, names: list[str]) -> pa.Table:
    """The inverse of `column_values`."""
    declared = {column.name: column for column in schema.columns}
    columns = zip(names, np.asarray(values, np.float64).T, strict=True)
    return pa.table({name: column_array(declared[name], column) for name, column in columns})
