"""Whether card.html shows the guarantee of its card: the promise and what it means, word by word.

Everything that the page's two sections on the promise say is compared with what the card implies. Other
parts of a page are covered by its hash alone.
"""

from html.parser import HTMLParser

from adumbra.release.promise import Card, at_most, captions, card_words, delta_figure, percent

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
    shown = {"promise": _promise(card), "meaning": _meaning(card)}
    return [
        f"card.html: its section `{name}` does not show the guarantee of card.json"
        for name in SECTIONS
        if read.text(name) != " ".join(shown[name].split())
    ]


def _promise(card: Card) -> str:
    """What the first section says, text alternatives in brackets."""
    said, words = card["guarantee"], card_words(card)
    rate, mu = percent(said["attacker"]["success_at_most"]), said["value"]["mu"]
    gauge = (
        "[A scale from 50 percent, a blind guess, to 100 percent, certainty; this release lets an "
        f"attacker reach {rate} percent at most]"
    )
    facts = [
        f"epsilon {at_most(said['quoted']['epsilon'])}",
        f"delta {delta_figure(said['quoted']['delta'], card['format'])}",
        *([] if mu is None else [f"mu {at_most(mu)}"]),
        f"hides {words.hides}",
        f"method {card['method']['name']}",
    ]
    headline = f"The promise {words.headline} at most {rate} % of the time."
    ends = "50 % blind guess certainty 100 %"
    return " ".join([headline, gauge, ends, said["attacker"]["sentence"], *facts])


def _meaning(card: Card) -> str:
    """What the section on its meaning says; what is drawn inside a picture is left out."""
    said = card["guarantee"]
    pictures = [f"[{alt}] {caption}" for alt, caption in captions(card)]
    formal = f"In the language of the field: {said['sentence']}."
    rule = f"The figure at the top: {said['attacker']['rule']}."
    return " ".join(["What the promise means", card["unit"]["sentence"], *pictures, formal, rule])


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
