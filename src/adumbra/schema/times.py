"""Dates and times as exact whole numbers: days, or microseconds, since 1970-01-01.

    date        days              0001-01-01 to 9999-12-31
    datetime    microseconds      1684-07-28 to 2255-06-05: whole numbers that a float64 holds exactly

A datetime has no time zone; one that is given with an offset is turned to UTC.
"""

import datetime as dt
import re

EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  (no zone, as above)
DAY = 86_400_000_000  # in microseconds
DATE, DATETIME = "date", "datetime"  # the words of the kinds
# The texts that are read as dates and times, in schemas and in data. Blanks around are trimmed before.
ISO = (
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
    r"(?:[T ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,18}))?)?"
    r"(?:Z|(?P<sign>[+-])(?P<ahead>[0-9]{2}):?(?P<more>[0-9]{2})?)?)?"
)
_TEXT = re.compile(ISO)


def instant_of(kind: str, value: object) -> int | None:
    """A declared date or time as a whole number; None if it is none."""
    if isinstance(value, str):
        return _parsed(kind, value.strip())
    if isinstance(value, dt.datetime):
        offset = value.utcoffset() or dt.timedelta(0)
        try:
            plain = value.replace(tzinfo=None) - offset
        except OverflowError:
            return None
        return _counted(kind, (plain - EPOCH) // dt.timedelta(microseconds=1))
    if isinstance(value, dt.date):
        return _counted(kind, (value - EPOCH.date()).days * DAY)
    return None


def _parsed(kind: str, text: str) -> int | None:
    found = _TEXT.fullmatch(text)
    if found is None:
        return None
    number = {name: int(found[name] or 0) for name in ("hour", "minute", "second", "ahead", "more")}
    try:
        days = (dt.date(int(found["year"]), int(found["month"]), int(found["day"])) - EPOCH.date()).days
        dt.time(number["hour"], number["minute"], number["second"])
        dt.time(number["ahead"], number["more"])
    except ValueError:
        return None
    seconds = (number["hour"] * 60 + number["minute"]) * 60 + number["second"]
    behind = (number["ahead"] * 60 + number["more"]) * (-60 if found["sign"] == "-" else 60)
    part = int((found["fraction"] or "")[:6].ljust(6, "0"))
    return _counted(kind, days * DAY + (seconds - behind) * 1_000_000 + part)


def _counted(kind: str, microseconds: int) -> int:
    return microseconds // DAY if kind == DATE else microseconds


def instant_text(kind: str, number: float) -> str:
    """A whole number as the date or time that it stands for; `instant_of` gives it back."""
    try:
        if kind == DATE:
            return (EPOCH.date() + dt.timedelta(days=int(number))).isoformat()
        return (EPOCH + dt.timedelta(microseconds=int(number))).isoformat()
    except (OverflowError, ValueError):
        return f"{number:.17g}"


def unit_words(kind: str) -> str:
    """What numbers of such a column count."""
    return f"{'days' if kind == DATE else 'microseconds'} since 1970-01-01"
