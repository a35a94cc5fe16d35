"""`make site`: the documentation as a site that needs no network, built strictly.

    python tools/build_site.py OUT

Pages of docs/, the root's pages and the proofs are copied to a folder of their own, where links
between them are set anew; links to other files of the repository become plain words. The API reference
comes from docstrings, and the gallery from releases that are made here, of small generated tables.
"""

import html
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]

from api_pages import KINDS, api_pages  # noqa: E402

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s#]+)(#[^()\s]*)?\)")
FETCHED = re.compile(r"<(?:script|img|iframe|link)\b[^>]*(?:src|href)=\W?https?://[^>]*>")
FENCE = re.compile(r"(^```.*?^```[^\n]*$)", re.DOTALL | re.MULTILINE)
SECTIONS = {
    "Tutorials": "tutorials",
    "How-to": "how-to",
    "Explanation": "explanation",
    "Reference": "reference",
    "Benchmarks": "benchmarks",
    "Decisions": "decisions",
    "Proofs": "proofs",
    "Project": "project",
}
CONFIG = """
site_name: Adumbra
docs_dir: pages
site_dir: {out}
use_directory_urls: false
theme:
  name: material
  font: false
  icon: {{logo: material/circle-half-full}}
  features: [navigation.indexes, navigation.top, navigation.tabs, content.code.copy]
  palette:
  - media: "(prefers-color-scheme: light)"
    scheme: default
    primary: teal
    accent: teal
    toggle: {{icon: material/weather-night, name: "to dark"}}
  - media: "(prefers-color-scheme: dark)"
    scheme: slate
    primary: teal
    accent: teal
    toggle: {{icon: material/weather-sunny, name: "to light"}}
plugins: [search]
extra_css: [site.css]
extra: {{generator: false}}
markdown_extensions:
- tables
- attr_list
- md_in_html
- sane_lists
- pymdownx.superfences
- pymdownx.highlight: {{use_pygments: true}}
- toc:
    permalink: true
    slugify: !!python/object/apply:pymdownx.slugs.slugify {{kwds: {{case: lower}}}}
validation:
  nav: {{omitted_files: warn, not_found: warn, absolute_links: warn}}
  links: {{not_found: warn, anchors: warn, absolute_links: warn, unrecognized_links: warn}}
nav:
{nav}
"""
CSS = """
.md-typeset td:first-child code { white-space: nowrap; }
.gallery iframe { width: 100%; height: 34rem; border-radius: 8px; }
.gallery iframe { border: 1px solid var(--md-default-fg-color--lightest); }
"""


GALLERY = """# Gallery

Pages as a release makes them, of generated tables of a few thousand rows: no script, nothing fetched,
and every number on a card is one that was released.
"""
EVALUATION = (
    "The moments release beside the rows that it was made from; of private rows, such a page is for the "
    "custodian alone."
)


def staged_pages() -> dict[Path, str]:
    """Every page and picture of the repository that the site shows, by its place on the site."""
    pages = {ROOT / "README.md": "index.md", ROOT / "docs/README.md": "contents.md"}
    for name in ("ARCHITECTURE", "CONTRIBUTING", "SECURITY", "CHANGELOG"):
        pages[ROOT / f"{name}.md"] = f"project/{name.lower()}.md"
    pages[ROOT / "docs/theory.md"] = "reference/theory.md"
    for path in sorted((ROOT / "docs").rglob("*")):
        if path.is_file() and path not in pages:
            pages[path] = path.relative_to(ROOT / "docs").as_posix()
    for path in sorted((ROOT / "src/adumbra").rglob("*.proof.md")):
        parts = path.relative_to(ROOT / "src/adumbra").as_posix().removesuffix(".proof.md")
        pages[path] = f"proofs/{parts.replace('/', '.')}.md"
    pages[ROOT / "docs/decisions"] = "decisions/index.md"
    return pages


def stage(folder: Path) -> None:
    """Copy all pages, with links that lead to their new places."""
    pages = staged_pages()
    for source, place in pages.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            continue
        if source.suffix == ".md":
            target.write_text(_relinked(source, place, pages), encoding="utf-8")
        else:
            target.write_bytes(source.read_bytes())
    for kind, text in api_pages().items():
        (folder / "reference" / f"api-{kind}.md").write_text(text, encoding="utf-8")
    listed = "\n".join(
        f"- [{_title(path)}]({path.name})" for path in sorted((folder / "decisions").glob("0*"))
    )
    (folder / "decisions/index.md").write_text(f"# Decisions\n\n{listed}\n", encoding="utf-8")
    (folder / "site.css").write_text(CSS, encoding="utf-8")


def _relinked(source: Path, place: str, pages: dict[Path, str]) -> str:
    """The text of a page for its new place; code is left as it is."""
    parts = FENCE.split(source.read_text(encoding="utf-8"))

    def new(found: re.Match[str]) -> str:
        mark, words, target, anchor = found[1], found[2], found[3], found[4] or ""
        if re.match(r"[a-z]+:", target):
            return found[0]
        path = (source.parent / target).resolve()
        if path in pages:
            way = os.path.relpath(pages[path], Path(place).parent)
            return f"{mark}[{words}]({Path(way).as_posix()}{anchor})"
        if not path.exists():
            sys.exit(f"{source.relative_to(ROOT)}: its link to {target} leads nowhere")
        return words

    parts[::2] = [LINK.sub(new, part) for part in parts[::2]]
    text = "".join(parts)
    return text if text.lstrip().startswith("# ") else f"# {source.stem}\n\n{text}"


def gallery(folder: Path) -> None:
    """A card of every method, and an evaluation; of generated tables, so all of it may be shown."""
    from support import pages  # noqa: PLC0415 - after the path is set; loads the package

    place = folder / "gallery"
    place.mkdir()
    lines = [GALLERY]
    with tempfile.TemporaryDirectory() as work:
        made = {}
        for name in pages.KINDS:
            made[name] = release = pages.release_of(name, Path(work) / name, rows=4_000)
            (place / f"{name}.html").write_bytes((Path(work) / name / "card.html").read_bytes())
            lines.append(_frame(name, f"{release.card['guarantee']['sentence']}: {release.summary()}."))
        found = pages.evaluation_of([made["moments"]], rows=4_000, models=1_000)
        (place / "evaluation.html").write_text(found.to_html(), encoding="utf-8")
        lines.append(_frame("evaluation", EVALUATION))
    (place / "index.md").write_text("\n".join(lines), encoding="utf-8")


def _frame(name: str, words: str) -> str:
    return (
        f"## {name}\n\n{html.escape(words)} [Open the page]({name}.html){{ target=_blank }}\n\n"
        f'<div class="gallery"><iframe src="{name}.html" title="{name}" loading="lazy"></iframe></div>\n'
    )


def _title(path: Path) -> str:
    return re.sub(r"^# *", "", path.read_text(encoding="utf-8").split("\n", 1)[0]).replace("`", "")


def navigation(folder: Path) -> str:
    """The tree of pages, titled by their first lines."""
    lines = ["- Adumbra: [index.md, contents.md]"]
    for section, where in SECTIONS.items():
        lines.append(f"- {section}:")
        found = sorted(
            (folder / where).glob("*.md"), key=lambda path: (path.name != "index.md", path.name)
        )
        api = [path for path in found if path.stem.removeprefix("api-") in KINDS]
        lines += [f"  - {where}/{path.name}" for path in found if path not in api]
        lines += [f'  - "Python: {KINDS[path.stem[4:]]}": {where}/{path.name}' for path in api]
        if section == "Explanation":
            lines.append("- Gallery: gallery/index.md")
    return "\n".join(lines)


def outside_parts(site: Path) -> list[str]:
    """Scripts, styles and pictures that a page would fetch from another host; words may link there."""
    return [
        f"{page.relative_to(site)}: fetches {tag}"
        for page in sorted(site.rglob("*.html"))
        for tag in FETCHED.findall(page.read_text(encoding="utf-8"))
    ]


def main(out: str) -> None:
    """Stage everything and build; any broken link, anchor or page outside the tree fails."""
    with tempfile.TemporaryDirectory() as work:
        pages = Path(work) / "pages"
        pages.mkdir()
        stage(pages)
        gallery(pages)
        config = Path(work) / "mkdocs.yml"
        config.write_text(
            CONFIG.format(out=Path(out).resolve(), nav=navigation(pages)), encoding="utf-8"
        )
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config)]
        done = subprocess.run(command, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    if done.returncode != 0:
        sys.exit(done.returncode)
    faults = outside_parts(Path(out))
    if faults:
        sys.exit("\n".join(faults))
    print(f"site      {Path(out) / 'index.html'}  (its search needs a server: python -m http.server)")


if __name__ == "__main__":
    main(*sys.argv[1:])
