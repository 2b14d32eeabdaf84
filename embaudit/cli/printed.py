"""How a command that ends in one page gives it: in the terminal, as JSON or Markdown, and in a file besides.

Untrusted text (names, tokens, reasons) for a terminal: as plain text, never markup or control codes.

Rich would interpret a token such as ``[red]``; ``embaudit.words.sentences`` handles what the terminal itself
interprets.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.markup import escape

from embaudit.words.sentences import visible, visible_lines

if TYPE_CHECKING:
    from embaudit.pages.ci import CheckedRule
    from embaudit.questions.report import Report


@dataclass(frozen=True)
class OutputOptions:
    """How the user wants a report: as JSON or Markdown in place of the terminal's form, and as HTML in a file."""

    out: Path | None
    as_json: bool
    as_markdown: bool
    junit: Path | None = None
    sarif: Path | None = None

    def show(self, report: Report, asks: str = "", subject: str = "") -> int:
        """Print a report, and write its page if a file was named; the code that the command ends with.

        Args:
            asks, subject: the question and what it was asked of, for CI.
        """
        page = report.page()
        if self.junit is not None or self.sarif is not None:
            from embaudit.pages.ci import checked_of

            write_for_ci(asks, subject, list(checked_of(report)), self.junit, self.sarif, report.seconds)
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


def write_for_ci(
    asks: str,
    subject: str,
    checked: Sequence[CheckedRule],
    junit: Path | None,
    sarif: Path | None,
    seconds: float = 0.0,
) -> None:
    """Write the files that other people's CI reads."""
    from embaudit.pages import ci
    from embaudit.pages.write import write_file

    if junit is not None:
        write_file(ci.junit(asks, subject, checked, seconds), junit)
    if sarif is not None:
        write_file(ci.sarif(asks, subject, checked), sarif)


CI = (
    click.Option(
        ["--junit"],
        type=click.Path(dir_okay=False, path_type=Path),
        help="Also write JUnit's XML: a case for each rule and golden query.",
    ),
    click.Option(
        ["--sarif"],
        type=click.Path(dir_okay=False, path_type=Path),
        help="Also write SARIF: a result for each problem, and what to look at.",
    ),
)
OUTPUT = (
    click.Option(["--out"], type=click.Path(dir_okay=False, path_type=Path), help="Also write it as an HTML page."),
    click.Option(["--json", "as_json"], is_flag=True, help="Print the result as JSON."),
    click.Option(
        ["--markdown", "as_markdown"], is_flag=True, help="Print it as Markdown, for a pull request or model card."
    ),
    *CI,
)


__all__ = ["as_text", "visible", "visible_lines"]


def as_text(text: object) -> str:
    """The text with invisible characters and rich markup escaped."""
    return escape(visible(text))
