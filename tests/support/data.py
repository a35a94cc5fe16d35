"""Slow, plain readers that share no code with the product, and schemas to test with."""

import math
import re

from adumbra.relations import Neighbours, Unit
from adumbra.schema.schema import Column, Kind, Schema

NUMBER = Column(name="a", kind=Kind.NUMBER, lower=-10, upper=10, missing=3)
INTEGER = Column(name="i", kind=Kind.INTEGER, lower=0, upper=7)
CATEGORY = Column(name="b", kind=Kind.CATEGORY, categories=("x", "y", "z w"), missing="category")
BOOLEAN = Column(name="c", kind=Kind.BOOLEAN, missing=True)
DIGITS = Column(name="d", kind=Kind.CATEGORY, categories=("x", "01", "1", "0.50", "2"), missing="x")
TRUTHS = Column(name="t", kind=Kind.CATEGORY, categories=("maybe", "True", "false"))
MIXED = (NUMBER, INTEGER, CATEGORY, BOOLEAN)


def table(*columns, neighbours=Neighbours.REPLACE_ONE, **facts):
    unit = Unit.ELEMENT if neighbours is Neighbours.ONE_ELEMENT else Unit.ROW
    return Schema(columns=columns or MIXED, unit=unit, neighbours=neighbours, **facts)


def reference_records(
    data: bytes, longest: int = 2**20, *, one_field: bool = False
) -> list[list[bytes] | None]:
    """CSV records by a state machine, one byte at a time; None is a record with an open quote.

    With one field a blank line after the header is a record too.
    """
    data = data.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    data = data.replace(b"\r\n", b"\n").replace(b"\r", b" ")
    if data and not data.endswith(b"\n"):
        data += b"\n"
    records: list[list[bytes] | None] = []
    position = 0
    while position < len(data):
        if data[position : position + 1] == b"\n":
            position += 1
            if one_field and records:
                records.append([b""])
            continue
        fields, position = _reference_record(data, position, longest)
        records.append(fields)
    return records


def _reference_record(data: bytes, position: int, longest: int) -> tuple[list[bytes] | None, int]:
    fields, field, state, begin = [], b"", "start", position
    while position < len(data):
        sign = data[position : position + 1]
        position += 1
        if state == "quoted":
            if sign != b'"':
                field += sign
            elif data[position : position + 1] == b'"':
                field += sign
                position += 1
            else:
                state = "plain"
        elif sign == b"\n":
            return [*fields, field if position - 1 - begin <= longest else b"\xff"], position
        elif sign == b",":
            fields.append(field if position - 1 - begin <= longest else b"\xff")
            field, state, begin = b"", "start", position
        elif sign == b'"' and state == "start":
            state = "quoted"
        else:
            field += sign
            state = "plain"
    return None, position


def reference_number(text: bytes) -> float:
    """The value of a text: a decimal number, or true and false; NaN for any other."""
    word = bytes(text).strip(b" \t\n\r\x0b\x0c")
    if word.lower() in (b"true", b"false"):
        return float(word.lower() == b"true")
    is_decimal = re.fullmatch(rb"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?", word)
    return float(word) if is_decimal else math.nan


def reference_value(column: Column, cell: object) -> float:
    """One cell, read on its own: text as bytes, a number as a float, or None."""
    if cell is None:
        return column.fill
    lower, upper = column.limits
    value = cell if isinstance(cell, float) else reference_number(cell)
    if column.is_numeric:
        if not math.isfinite(value):
            return column.fill
        value = min(max(value, lower), upper)
        return float(round(value)) if column.kind is Kind.INTEGER else value
    if column.kind is Kind.BOOLEAN:
        if isinstance(cell, float):
            return cell if cell in (0.0, 1.0) else column.fill
        word = bytes(cell).strip(b" \t\n\r\x0b\x0c").lower()
        if word in (b"true", b"t", b"yes", b"y", b"1", b"1.0"):
            return 1.0
        return 0.0 if word in (b"false", b"f", b"no", b"n", b"0", b"0.0") else column.fill
    names = [name.encode() for name in column.categories]
    if cell in names:
        return float(names.index(cell))
    same = [code for code, name in enumerate(names) if reference_number(name) == value]
    plain = [code for code in same if column.categories[code] in (repr(value), repr(value)[:-2])]
    return float([*plain, *same][0]) if same and math.isfinite(value) else column.fill
