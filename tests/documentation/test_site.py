"""The pages as a site: what mkdocs.yml names, where links lead, and what `make site` builds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import click
import pytest
import yaml

from embaudit.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
LINKING = [*PAGES, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md"))]
# A resource that a browser loads by itself; a link that a person may follow is none.
LOADED = {"src", "srcset", "poster", "data"}
COUNTED = ("table", "tr", "td", "th", "li", "pre", "h1", "h2", "h3", "h4", "ol", "ul", "strong", "em", "img")


def pages_of_the_nav() -> list[str]:
    def under(node: Any) -> list[str]:
        if isinstance(node, str):
            return [node]
        return [name for each in (node.values() if isinstance(node, dict) else node) for name in under(each)]

    return under(yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader=yaml.BaseLoader)["nav"])


def test_the_nav_names_every_page_once() -> None:
    assert Counter(pages_of_the_nav()) == Counter(path.name for path in PAGES)


def test_the_nav_has_four_parts() -> None:
    nav = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader=yaml.BaseLoader)["nav"]
    assert [name for part in nav for name in part] == ["Start", "Ask", "Operate", "Understand"]


def without_code(text: str) -> str:
    return re.sub(r"```.*?^\s*```|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(path: Path) -> set[str]:
    """The headings of a page, as the repository's own view and the site both make anchors of them."""
    text = re.sub(r"```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", found) for found in re.findall(r"^#+ (.*)$", text, re.MULTILINE))
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", LINKING, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        to = (page.parent / name).resolve() if name else page
        assert to.exists(), link
        assert not anchor or anchor in anchors(to), link


def test_pictures_are_small_and_shown() -> None:
    pictures = sorted((DOCS / "pictures").iterdir())
    text = "".join(path.read_text(encoding="utf-8") for path in LINKING)
    for path in pictures:
        assert path.stat().st_size < 150_000, path.name
        assert f"pictures/{path.name})" in text, path.name
    assert sum(path.stat().st_size for path in pictures) < 600_000


def test_the_house_has_the_floors_that_imports_obey() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    house = (DOCS / "pictures/house.svg").read_text(encoding="utf-8")
    floors = re.findall(r'class="c"[^>]*>([^<]+)<', house)
    assert floors == [layer.replace("embaudit.", "") for layer in layers]


def test_the_chain_names_commands_that_exist() -> None:
    chain = (DOCS / "pictures/chain.svg").read_text(encoding="utf-8")
    named = [name for line in re.findall(r"embaudit ([\w, ]+)<", chain) for name in line.split(", ")]
    assert len(named) > 6
    assert set(named) <= set(cli.list_commands(click.Context(cli)))


class Built(HTMLParser):
    """How often each element stands on a page, and what a browser would load for it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self.loaded: list[str] = []
        self.linked: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in COUNTED:
            self.counts[tag] += 1
        named = LOADED | ({"href"} if tag in ("link", "image", "use") else set())
        self.linked += [value for name, value in attrs if (tag, name) == ("a", "href") and value]
        self.loaded += [value for name, value in attrs if name in named and value]


def build_site(folder: Path) -> tuple[Path, str]:
    for package in ("mkdocs", "material"):
        pytest.importorskip(package, reason="MkDocs is not installed (make site)")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder, done.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    return build_site(tmp_path_factory.mktemp("site"))


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_loads_nothing_from_the_network(site: tuple[Path, str]) -> None:
    folder, said = site
    assert "WARNING" not in said
    built = sorted(folder.rglob("*.html"))
    assert len(built) > len(PAGES)
    for path in built:
        for address in Built(path.read_text(encoding="utf-8")).loaded:
            assert not re.match(r"(https?:)?//", address), (path.name, address)
    for path in folder.rglob("*.css"):
        assert not re.search(r"url\(\s*['\"]?(https?:)?//|@import", path.read_text(encoding="utf-8")), path.name


@pytest.mark.slow
def test_every_link_of_the_site_leads_to_a_file_of_it(site: tuple[Path, str]) -> None:
    folder, _ = site
    for path in sorted(folder.rglob("*.html")):
        if path.name == "404.html":
            continue  # its links begin at the server's root
        for link in Built(path.read_text(encoding="utf-8")).linked:
            name = link.partition("#")[0]
            if name and not re.match(r"[a-z]+:", name):
                to = (path.parent / unquote(name)).resolve()
                assert to.is_relative_to(folder), (path.name, link)
                assert to.is_file(), (path.name, link)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_the_site_shows_what_the_repository_s_own_view_shows(page: Path) -> None:
    """The site's Markdown has other rules: a list without an empty line before it would be a paragraph there."""
    markdown_it = pytest.importorskip("markdown_it")
    markdown = pytest.importorskip("markdown", reason="MkDocs is not installed (make site)")
    pytest.importorskip("pymdownx", reason="MkDocs is not installed (make site)")
    text = page.read_text(encoding="utf-8")
    declared = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    extensions = [name if isinstance(name, str) else next(iter(name)) for name in declared["markdown_extensions"]]
    built = Built(markdown.markdown(text, extensions=extensions))
    viewed = Built(markdown_it.MarkdownIt("commonmark").enable("table").render(text))
    assert built.counts == viewed.counts
