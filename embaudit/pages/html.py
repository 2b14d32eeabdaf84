"""Renders a page as one HTML file without scripts or network access, for phones and dark mode, too.

Everything from a checkpoint or corpus (token strings, names, reasons) is untrusted: the template escapes automatically,
and the page's content security policy forbids scripts and loading anything.
"""

from __future__ import annotations

import re
from functools import cache, partial
from importlib.resources import files

from jinja2 import DictLoader, Environment, StrictUndefined, Template
from markupsafe import Markup

from embaudit.declared.document import Page, figures
from embaudit.pages.svg import pictures, svg
from embaudit.words.masking import masked_output
from embaudit.words.sentences import visible

# Beside options, a command's arguments are NAMES, quoted, names-with-hyphens or words with a sign in them: of "embaudit
# why says where", only the first two are typed.
VALUE = r"(?:[A-Z]+\b|'[^']*'|[^\s,;()]*[/.=:][^\s,;()]*[^\s,;.:()]|[a-z]*\d[\w.]*)"
ARGUMENT = rf"(?:--?[\w.=/-]+|[a-z]+-[a-z-]+|{VALUE})"
TYPED = re.compile(
    rf"`[^`]+`|\bembaudit (?:query [a-z-]+|[a-z][a-z-]*)(?: {ARGUMENT})*|"
    rf"(?<![\w-])--[a-z][a-z-]*(?:[ =]{VALUE})?"
)


def pieces(advice: str) -> list[tuple[str, bool]]:
    """Its parts in order, and whether each is typed."""
    found: list[tuple[str, bool]] = []
    end = 0
    for typed in TYPED.finditer(advice):
        found += [(advice[end : typed.start()], False), (typed[0].strip("`"), True)]
        end = typed.end()
    return [(text, is_typed) for text, is_typed in [*found, (advice[end:], False)] if text]


def render(page: Page, earlier: str = "") -> str:
    """The complete HTML file.

    Args:
        earlier: the previous version of the file, to reuse unchanged pictures.
    """
    return masked_output(_template("page").render(page=page, svg=partial(svg, earlier=pictures(earlier))))


def render_summary(page: Page) -> str:
    """Findings and identity as a fragment for a notebook, with scoped styles."""
    return masked_output(_template("notebook").render(page=page))


@cache
def _template(name: str) -> Template:
    environment = Environment(
        loader=DictLoader({name: _own_file(f"{name}.html.j2")}),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # A file of this package, so trusted.
    environment.filters["pieces"] = pieces
    environment.globals |= {"style": Markup(_own_file("page.css")), "figures": figures}
    return environment.get_template(name)


def _shown(value: object) -> object:
    """Applied to every ``{{ … }}`` of the template before escaping."""
    return value if isinstance(value, Markup) else visible(value)


def _own_file(name: str) -> str:
    return files("embaudit.pages").joinpath(name).read_text(encoding="utf-8")
