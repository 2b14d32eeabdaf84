"""A page as one HTML file: no script, no network, readable on a phone and in the dark.

Everything in it that came with a checkpoint or a corpus (token strings, names, reasons) is text from strangers: the
template escapes by itself, and the page's own policy forbids scripts and loading anything.
"""

from __future__ import annotations

from functools import cache, partial
from importlib.resources import files

from jinja2 import DictLoader, Environment, StrictUndefined, Template
from markupsafe import Markup

from embaudit.page.model import Page, figures
from embaudit.page.svg import pictures, svg
from embaudit.shown import visible


def render(page: Page, earlier: str = "") -> str:
    """The whole file.

    Args:
        earlier: what stood there before, whose pictures need not be drawn again where they are the same.
    """
    return _template("page").render(page=page, svg=partial(svg, earlier=pictures(earlier)))


def render_summary(page: Page) -> str:
    """Findings and identity as a fragment, for a notebook: its styles reach nothing outside of it."""
    return _template("notebook").render(page=page)


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
    # A file of this package: no text from outside.
    environment.globals |= {"style": Markup(_own_file("page.css")), "figures": figures}
    return environment.get_template(name)


def _shown(value: object) -> object:
    """What every ``{{ … }}`` of the template goes through before it is escaped."""
    return value if isinstance(value, Markup) else visible(value)


def _own_file(name: str) -> str:
    return files("embaudit.page").joinpath(name).read_text(encoding="utf-8")
