"""A hook of MkDocs: links that lead out of ``docs/`` lead to copies, which the site has under ``repository/``.

The pages link to files of the repository (``../benchmarks/README.md``), which its own view follows. The project has no
public address that a site could link to instead, and the site is read without a network: so it carries these files.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

DOCS, COPIES, LISTING = "docs/", "repository/", "/files.md"
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)#\s]+)(?=[)#])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is linked to, and what that links to in turn."""
    root = Path(config.config_file_path).parent
    linked = {name for file in files.documentation_pages() for name in linked_from(DOCS + file.src_uri, root)}
    done: set[str] = set()
    while waiting := sorted(name for name in linked - done if not name.startswith(DOCS)):
        for name in waiting:
            for file in copies(root, name, config):
                files.append(file)
        done |= linked
        linked |= {found for name in waiting if name.endswith(".md") for found in linked_from(name, root)}
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn the links of a page that lead in or out of ``docs/`` to their places in the site."""
    root, uri = Path(config.config_file_path).parent, page.file.src_uri
    name = uri.removeprefix(COPIES) if uri.startswith(COPIES) else DOCS + uri
    if name.endswith(LISTING):
        return markdown

    def turned(link: re.Match[str]) -> str:
        to = target(name, link[1])
        if not is_ours(to, root) or (name.startswith(DOCS) and to.startswith(DOCS)):
            return link[1]
        return posixpath.relpath(place(to, root), posixpath.dirname(uri) or ".")

    return LINK.sub(turned, markdown)


def target(name: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), link))


def is_ours(name: str, root: Path) -> bool:
    return not name.startswith("..") and (root / name).exists()


def linked_from(name: str, root: Path) -> set[str]:
    """What a page links to that is there, as paths from the root of the repository."""
    found = {target(name, link) for link in LINK.findall((root / name).read_text(encoding="utf-8"))}
    return {each for each in found if is_ours(each, root)}


def place(name: str, root: Path) -> str:
    """Where the site has a file of the repository; of a folder, the list of its files."""
    if name.startswith(DOCS):
        return name.removeprefix(DOCS)
    return COPIES + name + (LISTING if (root / name).is_dir() else "")


def copies(root: Path, name: str, config: MkDocsConfig) -> list[File]:
    path = root / name
    if not path.is_dir():
        return [File.generated(config, COPIES + name, abs_src_path=str(path))]
    inside = sorted(each.name for each in path.iterdir() if each.is_file())
    listing = f"# {name}\n\n" + "".join(f"- [{each}]({each})\n" for each in inside)
    return [
        File.generated(config, place(name, root), content=listing),
        *(File.generated(config, f"{COPIES}{name}/{each}", abs_src_path=str(path / each)) for each in inside),
    ]
