"""What a release promises, in the words of its card and page; and whether a card and a page say it.

The words and figures follow from the guarantee, the relation, and whether rows are item sets, all of
which the card holds. `card_faults` recomputes them by the card's format, `page_faults` reads them off
card.html, so that a forger who makes all hashes right cannot change the promise in one place only.

    adumbra-release/1   delta was rounded to nearest, and item sets had the words of tables
    adumbra-release/2   every figure is rounded up; one element of an item set is one item more or less
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

from adumbra.errors import InvalidInput
from adumbra.numerics import figure_upper
from adumbra.privacy.guarantee import PrivacyGuarantee
from adumbra.relations import relation_of
from adumbra.release.words import FIRST_FORMAT, FORMAT, FORMATS, ONE_ITEM, WORDS, Words, words_for

__all__ = ["FIRST_FORMAT", "FORMAT", "FORMATS", "ONE_ITEM", "WORDS", "Words", "words_for"]
PAGE_DIGITS = 4
CLOSE = 1e-9  # relative: how far another machine's last bits may move a figure that is recomputed
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

Card = Mapping[str, Any]


OVERLAP_GAUSSIAN = (
    "Telling this table from a neighbour of it, by anything in this release, is at least as hard as "
    "telling which of these two curves one draw came from. They are {mu} standard deviations apart."
)
OVERLAP_PURE = (
    "The noise of a number that a neighbour moves as far as it can: the two curves differ nowhere by "
    "more than the factor e to the power {epsilon}."
)
ATTACK = (
    "Every attack lies on or below the curve. At the dot, where its guess is best, it is right at most "
    "{percent} of the time; on the dashed line it knows nothing."
)


def holds_item_sets(schema: Mapping[str, object]) -> bool:
    """Whether a card's schema declares rows that are sets of items."""
    return isinstance(schema.get("items"), Mapping)


def card_words(card: Card) -> Words:
    """The words that belong to a card, by its format."""
    return words_for(
        relation_of(card["unit"]["neighbours"]),
        item_sets=holds_item_sets(card["public_inputs"]["schema"]),
        release_format=card["format"],
    )


def promised(guarantee: PrivacyGuarantee, schema: Card) -> tuple[Words, dict[str, object]]:
    """What a new card says of its guarantee: the words of the relation, and the attacker's gain."""
    words = words_for(guarantee.neighbours, item_sets=holds_item_sets(schema))
    return words, attacker_gain(guarantee, words)


def attacker_gain(guarantee: PrivacyGuarantee, words: Words) -> dict[str, object]:
    """How often the best attack guesses right when it starts at even odds; rounded up, in words too.

    Pure epsilon: the posterior is at most e^eps / (1 + e^eps) whatever was released, so the success rate
    is too. Gaussian mu: the best test between N(0, 1) and N(mu, 1) is right with chance Phi(mu / 2),
    averaged over the noise; a single output can be more telling than the average one.
    """
    if guarantee.pure_epsilon is not None:
        success = 1.0 / (1.0 + math.exp(-guarantee.pure_epsilon))
        rule = "e^epsilon / (1 + e^epsilon): bounds the belief after any output, so the success rate too"
    else:
        success = 0.5 * math.erfc(-float(guarantee.mu or 0.0) / 2.0 / math.sqrt(2.0))
        rule = "Phi(mu / 2): bounds the success rate of the best test, averaged over the noise"
    success = min(1.0, math.nextafter(success * (1.0 + 1e-14), 2.0))
    return {
        "prior": 0.5,
        "success_at_most": success,
        "rule": rule,
        "sentence": attacker_sentence(words, success),
    }


def attacker_sentence(words: Words, success: float) -> str:
    """The same for people."""
    return (
        f"{words.attacker}. A blind guess is right 50 % of the time. With this release in hand, and any "
        f"other knowledge and any computer, the guess is right at most {percent(success)} % of the time."
    )


def percent(success: float) -> str:
    """A rate in per cent, rounded up to a tenth."""
    return f"{math.ceil(1000.0 * success) / 10.0:g}"


def at_most(value: float | None) -> str:
    """A part of the promise on a page: four digits, never below what it stands for."""
    return "–" if value is None else raised(figure_upper(value, PAGE_DIGITS))


def delta_figure(delta: float, release_format: str) -> str:
    """The delta on a page of this format."""
    if not delta:
        return "0 (pure)"
    return raised(f"{delta:.4g}") if release_format == FIRST_FORMAT else at_most(delta)


def raised(text: str) -> str:
    """1e-06 as 10⁻⁶."""
    mantissa, exponent, power = text.partition("e")
    mantissa = mantissa.replace("-", "−")
    if not exponent:
        return mantissa
    tens = "10" + str(int(power)).translate(SUPERSCRIPT)
    return tens if mantissa == "1" else f"{mantissa} × {tens}"


def captions(card: Card) -> list[tuple[str, str]]:
    """Text alternative and caption of each picture that is true of this guarantee."""
    mu, epsilon = card["guarantee"]["value"]["mu"], card["guarantee"]["value"]["epsilon"]
    rate = f"{percent(float(card['guarantee']['attacker']['success_at_most']))} %"
    said = []
    if mu is not None:
        alt = f"Two bell curves, {at_most(mu)} standard deviations apart"
        said.append((alt, OVERLAP_GAUSSIAN.format(mu=at_most(mu))))
    elif {use["distribution"] for use in card["mechanisms"]} == {"laplace"}:
        alt = f"Two Laplace curves, {at_most(epsilon)} scales apart"
        said.append((alt, OVERLAP_PURE.format(epsilon=at_most(epsilon))))
    alt = f"True alarms of the best attack against its false alarms; its best guess is right {rate}"
    return [*said, (alt, ATTACK.format(percent=rate))]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageWords:
    """What the promise on a page says, from the card alone: one value for the page and for its check."""

    words: Words
    rate: str  # the attacker's, in per cent
    delta: str
    captions: list[tuple[str, str]]
    rule: str


def page_words(card: Card) -> PageWords:
    """The words of a page's two sections on the promise; the rule of format 1 had two colons in it."""
    said = card["guarantee"]
    formula, _, meaning = said["attacker"]["rule"].partition(": ")
    first = f"The figure at the top: {said['attacker']['rule']}."
    later = f"The figure at the top is {formula}, which {meaning}."
    return PageWords(
        words=card_words(card),
        rate=percent(float(said["attacker"]["success_at_most"])),
        delta=delta_figure(said["quoted"]["delta"], card["format"]),
        captions=captions(card),
        rule=first if card["format"] == FIRST_FORMAT else later,
    )


def card_faults(card: Card) -> list[str]:
    """Where a card's words or figures are not those of its own guarantee; its schema holds already."""
    try:
        guarantee = PrivacyGuarantee.from_dict(card["guarantee"]["value"])
    except (InvalidInput, ValueError, TypeError, KeyError, AttributeError):
        return ["card.json at guarantee/value: is not a guarantee"]
    named = (card["unit"]["unit"], card["unit"]["neighbours"])
    if (str(guarantee.unit), str(guarantee.neighbours)) != named:
        return ["card.json: its guarantee is for another unit or relation than the card names"]
    words, said = card_words(card), card["guarantee"]
    quoted, attacker = said["quoted"], said["attacker"]
    gain = attacker_gain(guarantee, words)
    epsilon, success = guarantee.epsilon_at(guarantee.delta), gain["success_at_most"]
    truths = {
        "guarantee/variant": said["variant"] == ("pure" if guarantee.is_pure else "gaussian"),
        "guarantee/quoted": math.isclose(quoted["epsilon"], epsilon, rel_tol=CLOSE)
        and quoted["delta"] == guarantee.delta,
        "guarantee/sentence": said["sentence"] == _sentence(guarantee, card),
        "guarantee/attacker": math.isclose(attacker["success_at_most"], success, rel_tol=CLOSE)  # type: ignore[arg-type]
        and attacker["rule"] == gain["rule"]
        and attacker["sentence"] == attacker_sentence(words, attacker["success_at_most"]),
        "unit/sentence": card["unit"]["sentence"] == words.protects,
    }
    return [
        f"card.json at {place}: is not what its guarantee says"
        for place, true in truths.items()
        if not true
    ]


def _sentence(guarantee: PrivacyGuarantee, card: Card) -> str:
    """The sentence by the card's format, at the epsilon that it quotes."""
    said = guarantee.sentence_at(card["guarantee"]["quoted"]["epsilon"])
    if card["format"] != FIRST_FORMAT or guarantee.is_pure:
        return said
    return said.replace(f"delta={figure_upper(guarantee.delta)}", f"delta={guarantee.delta:g}", 1)


# What a page's two sections on the promise say is compared with the card; its hash covers the rest.
PAGE_LIMIT = 2**22  # characters of a page; a page is some 30,000
SECTIONS = ("promise", "meaning")


def page_faults(page: bytes, card: Card) -> list[str]:
    """Where the page's promise is not the card's."""
    if len(page) > PAGE_LIMIT:
        return [f"card.html: is larger than {PAGE_LIMIT} bytes"]
    try:
        read = Sections(page.decode())
    except (UnicodeDecodeError, AssertionError):  # what the parser raises on broken declarations
        return ["card.html: is not a page in UTF-8"]
    said = page_words(card)
    shown = {"promise": _promise(card, said), "meaning": _meaning(card, said)}
    return [
        f"card.html: its section `{name}` does not show the guarantee of card.json"
        for name in SECTIONS
        if read.text(name) != " ".join(shown[name].split())
    ]


def _promise(card: Card, page: PageWords) -> str:
    """What the first section says, text alternatives in brackets."""
    said, mu = card["guarantee"], card["guarantee"]["value"]["mu"]
    gauge = (
        "[A scale from 50 percent, a blind guess, to 100 percent, certainty; this release lets an "
        f"attacker reach {page.rate} percent at most]"
    )
    facts = [
        f"epsilon {at_most(said['quoted']['epsilon'])}",
        f"delta {page.delta}",
        *([] if mu is None else [f"mu {at_most(mu)}"]),
        f"hides {page.words.hides}",
        f"method {card['method']['name']}",
    ]
    headline = f"The promise {page.words.headline} at most {page.rate} % of the time."
    ends = "50 % blind guess certainty 100 %"
    return " ".join([headline, gauge, ends, said["attacker"]["sentence"], *facts])


def _meaning(card: Card, page: PageWords) -> str:
    """What the section on its meaning says; what is drawn inside a picture is left out."""
    pictures = [f"[{alt}] {caption}" for alt, caption in page.captions]
    formal = f"In the language of the field: {card['guarantee']['sentence']}."
    return " ".join(["What the promise means", card["unit"]["sentence"], *pictures, formal, page.rule])


class Sections(HTMLParser):
    """The text of the sections that are labelled by `SECTIONS`; pictures by their text alternative."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: dict[str, list[str]] = {name: [] for name in SECTIONS}
        self.inside: str | None = None
        self.depth, self.drawn = 0, 0
        self.feed(page)
        self.close()

    def text(self, name: str) -> str:
        """All that the sections of this name say, with single spaces."""
        return " ".join("".join(self.found[name]).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Enter a section or a picture."""
        given = dict(attrs)
        if self.inside is None:
            name = given.get("aria-labelledby")
            if tag == "section" and name in self.found:
                self.inside, self.depth, self.drawn = name, 1, 0
            return
        self.depth += tag == "section"
        self.drawn += tag == "svg"
        if tag == "svg" or "aria-label" in given:
            self._say(f"[{given.get('aria-label')}]")
        self._say(" ")

    def handle_endtag(self, tag: str) -> None:
        """Leave it."""
        self._say(" ")
        self.drawn -= tag == "svg" and self.drawn > 0
        self.depth -= tag == "section"
        if self.depth <= 0:
            self.inside = None

    def handle_data(self, data: str) -> None:
        """Keep what is read."""
        if not self.drawn:
            self._say(data)

    def _say(self, text: str) -> None:
        if self.inside is not None:
            self.found[self.inside].append(text)
