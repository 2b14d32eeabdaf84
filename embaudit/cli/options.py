"""Options shared by several commands.

How a command that ends in one page gives it: in the terminal, as JSON or Markdown, and in a file besides.

Untrusted text (names, tokens, reasons) for a terminal: as plain text, never markup or control codes.

Rich would interpret a token such as ``[red]``; ``embaudit.words.sentences`` handles what the terminal itself
interprets.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args, get_origin

import click
from rich.markup import escape

from embaudit.checkpoint.loading import PROMPTS
from embaudit.questions.audit import AuditRequest
from embaudit.system.settings import Settings, Warehouse, warehouse_at
from embaudit.words.errors import UsageError
from embaudit.words.sentences import visible

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from embaudit.pages.ci import CheckedRule
    from embaudit.questions.report import Report


Command = TypeVar("Command", bound=Callable[..., Any])


def _warehouse(value: str | Warehouse) -> Warehouse:
    """A file or a DuckLake address."""
    place = warehouse_at(value)
    if isinstance(place, Path) and place.is_dir():
        raise click.BadParameter(f"File '{value}' is a directory.")
    return place


warehouse_option = click.option(
    "--warehouse", type=_warehouse, metavar="PATH", help=AuditRequest.model_fields["warehouse"].description
)
format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="How rows are printed.",
)
METAVARS = {"profile": "NAME", "policy": "FILE", "notify": "BLOCK", "max_length": "N", "seed": "N"}
METAVARS |= dict.fromkeys(PROMPTS, "NAME|TEXT")
# How a checkpoint is loaded and run, for every command that does so.
CHECKPOINT_FIELDS = ("device", "dtype", "pooling", "max_length", "prompt", "seed", "allow_pickle", "trust_remote_code")


def request_options(*fields: str, argument: str = "CHECKPOINT", **help_texts: str) -> Callable[[Command], Command]:
    """Options for these fields of an audit request, and CHECKPOINT; the command receives a ``request``.

    Args:
        argument: how CHECKPOINT is written in the command's usage.
        help_texts: help for fields that mean something more specific in this command.
    """

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapper(**given: Any) -> Any:
            asked = {name: PARSERS.get(name, unchanged)(given.pop(name)) for name in ("checkpoint", *fields)}
            return command(request=AuditRequest.of(**asked), **given)

        decorated: Any = wrapper
        for name in reversed(fields):
            decorated = _option(name, help_texts.get(name))(decorated)
        return cast(Command, click.argument("checkpoint", metavar=argument)(decorated))

    return decorate


def _option(name: str, help_text: str | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    field = AuditRequest.model_fields[name]
    help_text = help_text or field.description or ""
    if name == "warehouse":
        return warehouse_option
    if name == "corpora":
        return click.option("--corpus", name, multiple=True, metavar="NAME=SOURCE", help=f"{help_text} Repeatable.")
    if name == "pairs":
        purposes = "PURPOSE is scoring or validation; without it, both."
        return click.option("--pairs", multiple=True, metavar="[PURPOSE=]FILE", help=f"{help_text} {purposes}")
    if name == "measures":
        return click.option("--measures", metavar="NAMES", help=f"Comma-separated: {help_text}")
    if name == "measure_settings":
        return click.option(
            "--set",
            name,
            multiple=True,
            metavar="MEASURE.NAME=VALUE",
            help="A setting of a measure, in place of the profile's (docs/settings.md), such as "
            "sticky.exhaustive=true, sticky.limit_tokens=300 or sticky.scan_dtype=float32. Repeatable.",
        )
    option = f"--{name.replace('_', '-')}"
    if field.annotation is bool:
        return click.option(option, is_flag=True, help=help_text)
    return click.option(
        option,
        type=_click_type(field),
        default=field.default,
        show_default=field.default is not None,
        metavar=METAVARS.get(name),
        help=help_text,
    )


def _click_type(field: FieldInfo) -> click.ParamType[Any] | type:
    """The field's type and limits as a click type, so that click itself rejects invalid values."""
    kinds = (field.annotation, *get_args(field.annotation))
    for kind in kinds:
        if get_origin(kind) is Literal:
            return click.Choice(get_args(kind))
    if int in kinds:
        (low,) = (limit.ge for limit in field.metadata if hasattr(limit, "ge"))
        return click.IntRange(min=low)
    return str


def unchanged(value: Any) -> Any:
    return value


def parse_measures(names: str | None) -> list[str] | None:
    """Comma-separated names; None if none were given."""
    return [name.strip() for name in names.split(",") if name.strip()] if names is not None else None


def parse_sources(corpora: Iterable[str]) -> dict[str, str]:
    """NAME=SOURCE options as a mapping.

    Raises:
        UsageError: if one has no '=' or a name is repeated.
    """
    sources: dict[str, str] = {}
    for given in corpora:
        name, separator, source = given.partition("=")
        if not (separator and name and source):
            raise UsageError(f"--corpus {given} is not NAME=SOURCE.", next_step="For example: --corpus sts=pairs.csv")
        if name in sources:
            raise UsageError(f"--corpus {name} is given twice.", next_step="Give it once.")
        sources[name] = source
    return sources


def parse_measure_settings(given: Iterable[str]) -> dict[str, dict[str, Any]]:
    """MEASURE.NAME=VALUE options by measure; a value is JSON, or else a word.

    Raises:
        UsageError: if one has another form, or is given twice.
    """
    found: dict[str, dict[str, Any]] = {}
    for one in given:
        named, separator, value = one.partition("=")
        measure, dot, name = named.partition(".")
        if not (separator and dot and measure and name):
            raise UsageError(
                f"--set {one} is not MEASURE.NAME=VALUE.", next_step="For example: --set sticky.exhaustive=true"
            )
        of_measure = found.setdefault(measure, {})
        if name in of_measure:
            raise UsageError(f"--set {named} is given twice.", next_step="Give it once.")
        try:
            of_measure[name] = json.loads(value)
        except ValueError:
            of_measure[name] = value
    return found


def parse_pairs(given: Iterable[str]) -> dict[str, str]:
    """The file of each purpose; a FILE without a purpose is for both.

    Raises:
        UsageError: if a purpose has two files.
    """
    found: dict[str, str] = {}
    for one in given:
        purpose, separator, file = one.partition("=")
        named = separator and purpose in ("scoring", "validation")
        more = {purpose: file} if named else {"scoring": one, "validation": one}
        if repeated := found.keys() & more.keys():
            raise UsageError(
                f"--pairs names two files for {' and '.join(sorted(repeated))}.",
                next_step="Name each purpose once: --pairs scoring=FILE --pairs validation=FILE",
            )
        found |= more
    return found


# Parsers of the options that are not plain values.
PARSERS: dict[str, Callable[[Any], Any]] = {
    "measures": parse_measures,
    "corpora": parse_sources,
    "pairs": parse_pairs,
    "measure_settings": parse_measure_settings,
    "warehouse": lambda place: str(place) if place else None,
}


def warehouse_path(given: Warehouse | None) -> Warehouse:
    """The given warehouse, or the configured one."""
    return given or Settings().warehouse_path


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
            from embaudit.pages.text import render as as_text

            click.echo(as_text(page))
        else:
            from embaudit.pages.text import print_page

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


def as_text(text: object) -> str:
    """The text with invisible characters and rich markup escaped."""
    return escape(visible(text))
