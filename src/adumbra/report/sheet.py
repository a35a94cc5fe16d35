"""What every export says of a release, and the data sheet for people in Markdown.

Every word that others wrote is escaped: a card cannot put a link, a picture or markup into the sheet.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from adumbra.errors import visible
from adumbra.numerics import figure_upper
from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.release.card import canonical
from adumbra.release.promise import promised
from adumbra.report.page import expected_words, in_order

SHOWN_COLUMNS = 200  # of a table; card.json has all
SYNTHESIZERS = ("moments", "ron-gauss", "lda")
_ONE_EACH = "There is one row per private row, in the same order, with noise."
ROWS = {
    "dppro": _ONE_EACH,
    "jl-laplace": _ONE_EACH,
    "pca": "There are as many rows as private rows; each is made of noisy numbers.",
    "answers": "Each row is one column or level of the table, with its mean or share.",
    "bounds": "Each row is one column, or one level of a column, that was found.",
    "top-k": "Each row is one item. No row belongs to a person.",
}
_MARKUP = re.compile(r"[\\`*_{}\[\]<>#|~&@$^]|:(?=//)|(?<=www)\.", re.IGNORECASE)
_LIST = re.compile(r"^(\d+)([.)])(?=\s|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What every format says of a release."""

    card: Mapping[str, Any]
    digest: str
    said: Mapping[str, str]  # the card's `about`, and what the publisher adds
    base: str = ""  # in front of the names of files: an address or a folder, with its slash
    guarantee: PrivacyGuarantee = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "guarantee", PrivacyGuarantee.from_dict(self.card["guarantee"]["value"])
        )

    @property
    def title(self) -> str:
        """The name of the release."""
        return str(self.card["about"]["title"])

    @property
    def slug(self) -> str:
        """The name for addresses and file names."""
        words = re.findall(r"[a-z0-9]+", f"{self.title} {self.said.get('curator', '')}".lower())
        return "-".join(words)[:100].strip("-") or f"release-{self.digest[:12]}"

    @property
    def epsilon(self) -> float:
        """Never below the card's: from its exact value, or as it is quoted, whichever is more."""
        quoted = float(self.card["guarantee"]["quoted"]["epsilon"])
        return float(figure_upper(max(quoted, self.guarantee.epsilon_at(self.guarantee.delta))))

    @property
    def delta(self) -> float:
        """Rounded up as well."""
        return float(figure_upper(self.guarantee.delta)) if self.guarantee.delta else 0.0

    @property
    def protects(self) -> str:
        """What is hidden, in the present words: those of format 1 said too much of item sets."""
        return promised(self.guarantee, self.card["public_inputs"]["schema"])[0].protects

    @property
    def attacker(self) -> str:
        """How often the best attack guesses right, in the present words."""
        return str(promised(self.guarantee, self.card["public_inputs"]["schema"])[1]["sentence"])

    @property
    def rows(self) -> str:
        """What one released row is, as far as the card alone can say."""
        name = str(self.card["method"]["name"]).split(" ", maxsplit=1)[0]
        if name in SYNTHESIZERS or self.card["method"]["config"].get("output") == "sample":
            return "The rows are synthetic: drawn from noisy statistics. No row is that of a person."
        return ROWS.get(name, "")

    @property
    def description(self) -> str:
        """The release in one paragraph, its promise included."""
        use = self.said.get("intended_use", "")
        method = self.card["method"]
        made = f"by the method {method['name']} of Adumbra {method['adumbra_version']}"
        parts = [
            f"{self.title}. A differentially private release {made}.",
            self.rows if self.card["contents"]["tables"] else "",
            f"Guarantee: {self.guarantee.sentence()}.",
            self.protects,
            f"Intended use: {use.rstrip('.')}." if use else "",
        ]
        return " ".join(filter(None, parts))

    def privacy(self) -> dict[str, object]:
        """The guarantee for machines, every figure rounded up."""
        mu = self.guarantee.mu
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            **({} if mu is None else {"mu": float(figure_upper(mu))}),
            "unit": str(self.guarantee.unit),
            "neighbours": str(self.guarantee.neighbours),
            "sentence": self.guarantee.sentence(),
            "protects": self.protects,
            "card_sha256": self.digest,
        }

    def files(self) -> list[tuple[str, str, int]]:
        """Name, SHA-256 and size of every file that the card covers, and of the card."""
        listed = [(name, one["sha256"], one["bytes"]) for name, one in self.card["files"].items()]
        return [("card.json", self.digest, len(canonical(self.card))), *sorted(listed)]

    def address(self, name: str) -> str:
        """Where a file is."""
        return self.base + name


def plain(text: object) -> str:
    """Words on one line that Markdown takes for nothing but words."""
    line = visible(" ".join(str(text).split()))
    line = _MARKUP.sub(lambda found: "\\" + found[0], line)
    line = _LIST.sub(r"\1\\\2", line)
    return f"\\{line}" if line[:1] in ("-", "+", "=") else line


def markdown(sheet: Sheet) -> str:
    """The data sheet of a release."""
    card, said = sheet.card, sheet.said
    method, ledger = card["method"], card["ledger"]
    named = [(name.replace("_", " "), value) for name, value in said.items() if name != "title"]
    mu = sheet.guarantee.mu
    amounts = [
        ("epsilon", figure_upper(sheet.epsilon)),
        ("delta", figure_upper(sheet.delta)),
        *([] if mu is None else [("mu", figure_upper(mu))]),
        ("unit", sheet.guarantee.unit),
        ("neighbours", sheet.guarantee.neighbours),
    ]
    noise = [
        (one["purpose"], one["distribution"], one["scale"], one.get("sensitivity", "-"))
        for one in card["mechanisms"]
    ]
    audit = (card.get("provenance") or {}).get("audit")
    made = [
        ("method", method["name"]),
        ("version", f"Adumbra {method['adumbra_version']}"),
        ("before", card["before_dp"]),
        ("audit of this version", "not recorded" if audit is None else audit_words(audit)),
        ("ledger entry", ledger["entry"]),
        ("accounting", f"{card['accounting']['rule']}; {card['accounting']['scope']}"),
    ]
    declared = card["public_inputs"]
    by = plain(declared["declared_by"] or "nobody named")
    parts = [
        [f"# Data sheet: {plain(sheet.title)}", "", plain(sheet.description)],
        ["## Who and when", "", *_table(("", ""), named)],
        ["## The promise", "", *_table(("", ""), amounts), "", plain(sheet.protects)],
        [plain(sheet.attacker)],
        ["## What it holds", "", *_files(sheet)],
        *_columns(card["contents"]["tables"]),
        ["## How it was made", "", *_table(("", ""), made)],
        ["## Noise", "", *_table(("for", "law", "scale", "hides a change of"), noise)],
        ["## Expected errors", "", *_table(("", ""), _errors(card["accuracy"]))],
        ["## What was declared public", "", f"Declared by {by}.", "", *_list(declared["unprotected"])],
        ["## Limits", "", *_list([*card["limits"], *card["notes"]])],
        ["## How to check it", "", f"`adumbra verify FOLDER --digest {sheet.digest}`"],
    ]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def audit_words(audit: Mapping[str, int]) -> str:
    """How the audit of a version ended."""
    return (
        f"{audit['claims']} claims attacked, {audit['refuted']} refuted, {audit['runs']} runs per table"
    )


def _errors(accuracy: Mapping[str, object]) -> list[tuple[str, object]]:
    return [(expected_words(name), value) for name, value in in_order(accuracy).items()]


def _files(sheet: Sheet) -> list[str]:
    arrays = sheet.card["contents"]["arrays"]
    shapes = [f"array {name}: {' x '.join(map(str, one['shape']))}" for name, one in arrays.items()]
    rows = [(name, size, digest) for name, digest, size in sheet.files()]
    return [*_table(("file", "bytes", "SHA-256"), rows), *([""] if shapes else []), *_list(shapes)]


def _columns(tables: Mapping[str, Any]) -> list[list[str]]:
    """The columns of each table by type."""
    found = []
    for table, held in tables.items():
        columns = held["columns"]
        more = len(columns) - SHOWN_COLUMNS
        rest = ["", f"and {more} more; card.json lists them"] if more > 0 else []
        title = f"### Table {plain(table)}: {held['rows']} rows"
        found.append([title, "", *_table(("column", "type"), columns[:SHOWN_COLUMNS]), *rest])
    return found


def _table(titles: tuple[str, ...], rows: Iterable[Iterable[object]]) -> list[str]:
    """A table of GitHub's Markdown."""
    lines = [f"| {' | '.join(titles)} |", f"|{' --- |' * len(titles)}"]
    return lines + [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else plain(value) or "-"


def _list(items: Iterable[object]) -> list[str]:
    return [f"- {plain(item)}" for item in items]
