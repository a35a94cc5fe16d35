"""What a browser would see of a page, by the standard library's parser."""

from html.parser import HTMLParser

TAGS = """
    html head meta title style body header main section footer p span h1 h2 h3 time a strong div dl dt dd
    ul li br figure figcaption table thead tbody tr th td sup pre code
    svg g path defs use clippath rect text circle details summary small i b ol h4
""".split()  # noqa: SIM905 - a list of words, one to read
ATTRIBUTES = """
    lang charset http-equiv content name class href id aria-labelledby aria-label aria-hidden role
    style scope data-label datetime viewbox d x y width height clip-path transform
    cx cy r fill-opacity preserveaspectratio text-anchor
""".split()  # noqa: SIM905 - a list of words, one to read


class Page(HTMLParser):
    """Tags in order, attributes by tag, text outside of the style sheet."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts, self.inside = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.inside.append(tag)

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        if self.inside[-1:] != ["style"]:
            self.texts.append(data)

    def handle_comment(self, data):
        self.tags.append("comment")

    @property
    def text(self):
        return " ".join("".join(self.texts).split())

    def faults(self):
        """Everything that a page without script or network has no use for."""
        found = [f"tag {tag}" for tag in self.tags if tag not in TAGS]
        for tag, name, value in self.attributes:
            if name not in ATTRIBUTES or name.startswith("on"):
                found.append(f"{tag} {name}")
            if name == "href" and not value.startswith("#"):
                found.append(f"{tag} {name}={value}")
            if name in ("style", "clip-path") and "url(" in value.replace("url(#", ""):
                found.append(f"{tag} {name}={value}")
        return found
