"""How a command that ends in one page gives it: in the terminal, as JSON or Markdown, and in a file besides."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from embaudit.questions.report import Report


@dataclass(frozen=True)
class OutputOptions:
    """How the user wants a report: as JSON or Markdown in place of the terminal's form, and as HTML in a file."""

    out: Path | None
    as_json: bool
    as_markdown: bool

    def show(self, report: Report) -> int:
        """Print a report, and write its page if a file was named; the code that the command ends with."""
        page = report.page()
        if self.out is not None:
            from embaudit.pages.html import render
            from embaudit.pages.write import write_file

            write_file(render(page), self.out)
        if self.as_json:
            click.echo(json.dumps(report.as_json(), indent=1, ensure_ascii=False))
        elif self.as_markdown:
            from embaudit.pages.markdown import render as as_text

            click.echo(as_text(page))
        else:
            from embaudit.pages.terminal import print_page

            print_page(page)
        return report.exit_code


OUTPUT = (
    click.Option(["--out"], type=click.Path(dir_okay=False, path_type=Path), help="Also write it as an HTML page."),
    click.Option(["--json", "as_json"], is_flag=True, help="Print the result as JSON."),
    click.Option(
        ["--markdown", "as_markdown"], is_flag=True, help="Print it as Markdown, for a pull request or model card."
    ),
)
