"""The API reference as Markdown, from signatures and docstrings: one page per kind of name."""

import enum
import inspect
import re
from collections.abc import Iterator
from typing import Any

import adumbra

KINDS = {
    "functions": "What you call",
    "values": "What you get, and what you declare",
    "configs": "Options of the methods",
    "estimators": "Estimators",
    "errors": "Errors and warnings",
}
QUALIFIED = re.compile(r"\b(?:[a-z_]+\.)+(?=[A-Z])")  # the home of a type, which its name needs not
WIDE = 90  # letters of a signature that stay on one line


def api_pages() -> dict[str, str]:
    """Page by name; every public name of the package is on one of them."""
    pages: dict[str, list[str]] = {kind: [f"# {title}\n"] for kind, title in KINDS.items()}
    for name in sorted(adumbra.__all__, key=str.lower):
        if name.startswith("_"):
            continue
        value = getattr(adumbra, name)
        pages[_kind(name, value)].append("\n".join(_entry(name, value)))
    return {kind: "\n".join(parts) for kind, parts in pages.items()}


def _kind(name: str, value: Any) -> str:
    if not inspect.isclass(value):
        return "functions"
    if issubclass(value, BaseException):
        return "errors"
    if name.endswith("Config"):
        return "configs"
    return "estimators" if value.__module__.startswith("adumbra.estimators") else "values"


def _entry(name: str, value: Any) -> Iterator[str]:
    """One public name with its members."""
    yield f"## `{name}`\n"
    if not inspect.isclass(value) or not issubclass(value, BaseException | enum.Enum):
        yield f"```python\n{_signature(name, value)}\n```\n"
    yield markdown(inspect.getdoc(value) or "")
    if inspect.isclass(value) and issubclass(value, enum.Enum):
        yield "\n".join(f"- `{one.name}` = `{one.value!r}`" for one in value) + "\n"
    elif inspect.isclass(value) and not issubclass(value, BaseException):
        for member, found in _members(value):
            label = member if isinstance(found, property) else _signature(member, found)
            yield f"### `{name}.{member}`\n"
            yield "" if isinstance(found, property) else f"```python\n{label}\n```\n"
            yield markdown(inspect.getdoc(found) or "")


def _members(value: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that our own code defines."""
    for member in sorted(dir(value)):
        owner = next((one for one in value.__mro__ if member in vars(one)), object)
        found = inspect.getattr_static(value, member)
        plain = found.__func__ if isinstance(found, staticmethod | classmethod) else found
        ours = owner.__module__.startswith("adumbra")
        if (
            ours
            and not member.startswith("_")
            and (inspect.isfunction(plain) or type(plain) is property)
        ):
            yield member, plain


def _signature(name: str, value: Any) -> str:
    """The call, on several lines where it is long; types as they are written."""
    try:
        given = inspect.signature(value)
    except ValueError:
        return name
    taken = [one for one in given.parameters.values() if one.name not in ("self", "cls")]
    kept = [QUALIFIED.sub("", str(one)).replace("'", "") for one in taken]
    named = [at for at, one in enumerate(taken) if one.kind is one.KEYWORD_ONLY]
    if named:
        kept.insert(named[0], "*")
    line = f"{name}({', '.join(kept)})"
    return line if len(line) <= WIDE else f"{name}(\n    " + ",\n    ".join(kept) + ",\n)"


def markdown(text: str) -> str:
    """A docstring with its sections as lists; examples stay code."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", text, flags=re.MULTILINE)
    shown = [_prose(parts[0])]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        shown.append(f"**{title}**\n")
        shown.append(_prose(body) if title in ("Notes", "Raises", "Returns") else _listed(body))
    return "\n".join(shown)


def _listed(body: str) -> str:
    """Lines of `name : words`, whose further lines are indented; or an example."""
    if ">>>" in body:
        return f"```pycon\n{body.strip()}\n```\n"
    joined = re.sub(r"\n\s+", " ", body.strip())
    lines = []
    for line in joined.splitlines():
        names, colon, words = line.partition(" : ")
        lines.append(f"- `{names}`: {_escaped(words)}" if colon else f"- {_escaped(line)}")
    return "\n".join(lines) + "\n"


def _prose(body: str) -> str:
    """Paragraphs; examples within them as code."""
    shown = []
    for part in re.split(r"\n\s*\n", body.strip()):
        is_code = part.lstrip().startswith(">>>") or part.startswith("    ")
        shown.append(f"```text\n{part}\n```" if is_code else _escaped(part))
    return "\n\n".join(shown) + "\n"


def _escaped(words: str) -> str:
    """Angle brackets are letters here, outside of code."""
    pieces = words.split("`")
    pieces[::2] = [piece.replace("<", "&lt;") for piece in pieces[::2]]
    return "`".join(pieces)
