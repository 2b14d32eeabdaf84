"""How a command that ends in one page gives it: in the terminal, as JSON or Markdown, and in a file besides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from embaudit.page.model import Page


def show_report(page: Page, as_json: dict[str, Any] | None, out: Path | None, *, as_markdown: bool) -> None:
    """Print a page.

    Args:
        as_json: printed instead, if given.
        out: where to write it as HTML, too.
    """
    if out is not None:
        from embaudit.page.html import render
        from embaudit.page.write import write_file

        write_file(render(page), out)
    if as_json is not None:
        click.echo(json.dumps(as_json, indent=1, ensure_ascii=False))
    elif as_markdown:
        from embaudit.page.markdown import render as as_text

        click.echo(as_text(page))
    else:
        from embaudit.page.terminal import print_page

        print_page(page)
