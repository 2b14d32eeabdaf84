"""``embaudit``: the list of commands, and how errors and interrupts are reported.

Expected failures print one paragraph and no traceback. Exit codes: 0 done, 1 a problem was found (a verdict, a tripped
gate, a flagged text) and nothing else, 2 usage or environment, 3 a bug, 130 interrupted.

A command's ``--help`` as a stranger reads it: examples first, then its options by what they are about.

What people type, by command: the first lines of each command's help.

A command group that imports a command when it is called; ``--help`` imports none.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Self

import click

from embaudit.cli.process import end_now, finish, prepare_process, was_interrupted
from embaudit.questions.names import NAMES
from embaudit.words.errors import (
    EXIT_BUG,
    EXIT_DONE,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    EmbauditError,
    ServerError,
    StorageError,
    is_of_interrupt,
)
from embaudit.words.masking import masked

EXAMPLES: dict[str, tuple[str, ...]] = {
    **{name: question.examples for name, question in NAMES.items()},
    "audit": (
        "audit ./my-checkpoint",
        "audit ./my-checkpoint --profile standard --corpus sts=sts-dev.csv --corpus wikipedia=wiki.txt",
        "audit ./my-checkpoint --policy release.toml",
    ),
    "compare": ("compare ./my-checkpoint ./my-next-checkpoint", "compare previous ./chroma"),
    "gate": ("gate latest --policy release.toml",),
    "token": ("token ./my-checkpoint gambia '##ing'",),
    "impact": ("impact ./my-checkpoint --data ./beir-folder --remedies",),
    "tempscale": ("tempscale ./my-checkpoint --corpus sts=sts-dev.csv",),
    "against": ('against ./my-checkpoint "a text" "another text"',),
    "show": ("show", "show ./my-checkpoint --full"),
    "report": ("report latest --out page.html",),
    "index": ("index --out index.html",),
    "list": ("list audits", "list measures"),
    "query": ("query", "query worst-tokens", 'query "SELECT count(*) FROM audit" --format csv'),
    "scores import": ("scores import mteb-results.json",),
    "scores list": ("scores list",),
    "scores correlate": ("scores correlate",),
    "screen": ("screen texts.jsonl",),
    "filter": ("filter latest --out tokens.json",),
    "mitigate": ("mitigate ./my-checkpoint --out ./without-sticky-tokens",),
    "apply-temperature": ("apply-temperature ./my-checkpoint --tau 0.9 --out ./cooler",),
    "watch": ("watch watch.toml",),
    "accept": ('accept ./my-checkpoint --reason "known, mended next week"',),
    "setup-server": ("setup-server",),
    "worker": ("worker",),
    "doctor": ("doctor", "doctor ./my-checkpoint"),
    "ingest": ("ingest sts sts-dev.csv",),
    "export": ("export ./for-dashboards",),
    "prune": ("prune --dry-run",),
    "upgrade": ("upgrade",),
}


OWN, ROWS = "Options", "How rows are read"
# By heading, the options that are under it in whatever command has them; all others say what is asked.
HEADINGS = {
    "How checkpoints are read": (
        *("device", "dtype", "with-dtype", "pooling", "max-length", "prompt", "allow-pickle", "trust-remote-code"),
    ),
    "How endpoints and Python objects are asked": (
        *("api", "model", "dimensions", "field", "requests-per-minute", "yes", "fresh", "query-prompt"),
        *("document-prompt", "query-field", "document-field"),
    ),
    ROWS: ("vector", "text", "id", "texts", "from", "numbers", "where", "table"),
    "Output": ("out", "json", "markdown", "card", "keep", "junit", "sarif", "format", "full", "logs", "help"),
}


class HelpedCommand(click.Command):
    """A command whose help begins with examples."""

    @classmethod
    def of(cls, command: click.Command) -> Self:
        """The same command, helped."""
        made = cls(command.name)
        made.__dict__.update(command.__dict__)
        return made

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        examples = EXAMPLES.get(" ".join(ctx.command_path.split()[1:]), ())
        super().format_help_text(ctx, formatter)
        if examples:
            with formatter.section("Examples"):
                for line in examples:
                    formatter.write(f"{'':>{formatter.current_indent}}$ embaudit {line}\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command's own first. Options such as --texts are about rows only where rows of a store are read."""
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        reads_rows = any("--vector" in one.opts for one in options)
        listed: dict[str, list[tuple[str, str]]] = {}
        for one in options:
            heading = heading_of(one)
            if (record := one.get_help_record(ctx)) is not None:
                listed.setdefault(OWN if heading == ROWS and not reads_rows else heading, []).append(record)
        for heading in (OWN, *HEADINGS):
            if rows := listed.get(heading):
                with formatter.section(heading):
                    formatter.write_dl(rows)


def heading_of(option: click.Option) -> str:
    name = max(option.opts, key=len).removeprefix("--")
    return next((heading for heading, names in HEADINGS.items() if name in names), OWN)


class LazyCommand(click.Command):
    """A placeholder with a command's name and line of help, until it is called.

    Args:
        place: the command's ``module:attribute``.
        heading: what it is listed under in ``--help``.
    """

    def __init__(self, name: str, short_help: str, place: str, heading: str = "Commands") -> None:
        super().__init__(name, short_help=short_help)
        self.place, self.heading = place, heading

    def load(self) -> click.Command:
        """Import the command."""
        module, _, attribute = self.place.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        if isinstance(command, click.Group):
            command.commands = {name: helped(one) for name, one in command.commands.items()}
        return helped(command)


def helped(command: click.Command) -> click.Command:
    """A command with examples in its help; a group lists its commands."""

    return command if isinstance(command, click.Group | HelpedCommand) else HelpedCommand.of(command)


class LazyGroup(click.Group):
    """A group of ``LazyCommand``s, which ``--help`` lists under their headings in the order given."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One list for each heading, with one width."""
        listed: dict[str, list[tuple[str, str]]] = {}
        widest = max(map(len, self.commands))
        for name, command in self.commands.items():
            heading = command.heading if isinstance(command, LazyCommand) else "Commands"
            line = command.get_short_help_str(formatter.width)
            listed.setdefault(heading, []).append((name.ljust(widest), line))
        for heading, rows in listed.items():
            with formatter.section(heading):
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Import the command; click suggests the closest name for an unknown one."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, LazyCommand) else command, rest


# These stage their finished steps, so the same command can continue.
STAGING_COMMANDS = {"audit", "impact", "tempscale", "token", "watch"}


# By what a person wants: name, module and function, and one line of help. Each is imported when it is called.
COMMANDS = {
    "Check and audit": {
        **{name: (f"question:{name}", question.line) for name, question in NAMES.items()},
        "audit": ("audit:audit", "Audit a checkpoint; run it again to continue."),
        "compare": ("results:compare", "Compare checkpoints by their audits."),
        "gate": ("gate:gate", "Check an audit, or answers, against a policy."),
        "token": ("token:token", "Test whether given tokens are sticky, without a scan."),
        "impact": ("audit:impact", "Measure what sticky tokens do to retrieval and other tasks."),
        "tempscale": ("audit:tempscale", "Test whether a lower attention temperature helps a checkpoint."),
        "against": ("against:against", "Compare a few texts with a corpus by SOCM."),
    },
    "Look at results": {
        "show": ("results:show", "Show an audit's summary."),
        "report": ("results:report", "Write an audit as one HTML page."),
        "index": ("results:index", "Write one HTML page about all audits of a warehouse."),
        "list": ("results:list_", "List the measures, or the checkpoints or audits in the warehouse."),
        "query": ("query:query", "Run a named query or one SQL statement, read-only."),
        "scores": ("scores:scores", "Import downstream scores and correlate them with audits."),
    },
    "Act on them": {
        "screen": ("screen:screen", "Flag texts with an unusual density of severe tokens."),
        "filter": ("gate:filter_", "List an audit's severe tokens as JSON, for an ingestion pipeline."),
        "mitigate": ("remedies:mitigate", "Write a checkpoint with severe tokens replaced or removed."),
        "apply-temperature": (
            "remedies:apply_temperature",
            "Write a checkpoint with another attention temperature.",
        ),
    },
    "Run it every night": {
        "watch": ("watch:watch", "Audit what is new on a watch list."),
        "accept": ("gate:accept", "Accept a tripped gate, or figures that got worse."),
        "setup-server": ("server:setup_server", "Prepare a Prefect server for the deployments."),
        "worker": ("server:worker", "Run audits scheduled by a Prefect server."),
    },
    "Look after the warehouse": {
        "doctor": ("doctor:doctor", "Check versions, device, hub, warehouse, disk and servers."),
        "ingest": ("warehouse:ingest", "Load a corpus into the warehouse."),
        "export": ("warehouse:export", "Copy the warehouse to a file or folder for dashboards."),
        "prune": ("warehouse:prune", "Delete detail rows of old audits and staged files."),
        "upgrade": ("warehouse:upgrade", "Upgrade the warehouse to the current schema."),
    },
}


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="embaudit")
def cli() -> None:
    """Audit text-embedding checkpoints: are they sound, which tokens are sticky, and what does mean pooling lose?

    Start with: embaudit check packaged:all-MiniLM-L6-v2
    """


for _wanted, _commands in COMMANDS.items():
    for _name, (_place, _line) in _commands.items():
        cli.add_command(LazyCommand(_name, _line, f"embaudit.cli.{_place}", heading=_wanted))


def main() -> None:
    """Run a command; report errors and interrupts as one paragraph and an exit code."""
    prepare_process()
    code = run()
    try:
        finish(code)
    except StorageError as error:
        print_failure(error)
        finish(error.exit_code)


def run() -> int:
    """Run the command that the arguments name; returns its exit code."""
    try:
        code = cli(standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return report_interrupt()
    except Exception as error:
        if was_interrupted() or is_of_interrupt(error):
            return report_interrupt()
        if isinstance(error, click.ClickException):
            error.show()
            # click's own would be 1 for some.
            return EXIT_USAGE
        if isinstance(error, EmbauditError):
            print_failure(error)
            return error.exit_code
        return report_unexpected(error)
    return code if isinstance(code, int) else EXIT_DONE


def report_unexpected(error: Exception) -> int:
    """Report an error of a library as what it means to a user; what nobody expected is a bug, with its traceback."""
    from embaudit_flows.server.temporary import expected_failure

    failure = expected_failure(error)
    if failure is None:
        import traceback

        sys.stderr.write(masked("".join(traceback.format_exception(error))))
        print_failure(
            EmbauditError(
                f"This is a bug in embaudit ({type(error).__name__}).",
                kept="Every finished step is staged, and the published tables are consistent.",
                next_step="Please report it, with the lines above.",
            )
        )
        return EXIT_BUG
    print_failure(failure)
    if isinstance(failure, ServerError):
        end_now(failure.exit_code)
    return failure.exit_code


def print_failure(error: EmbauditError) -> None:
    """Print an error as one paragraph: what happened, what was kept, what to do next."""
    # Imported only here: --help needs neither.
    from rich.console import Console
    from rich.text import Text

    from embaudit.words.sentences import visible

    console = Console(stderr=True)
    parts = [Text("Error: ", style="bold red"), Text(visible(error.happened))]
    if error.kept:
        parts += [Text(" "), Text(visible(error.kept))]
    if error.next_step:
        parts += [Text(" "), Text(visible(error.next_step), style="bold")]
    console.print(Text.assemble(*parts), soft_wrap=not console.is_terminal)


def report_interrupt() -> int:
    """Report an interrupt; only some commands have finished steps to continue from."""
    from rich.console import Console

    text = "\nInterrupted."
    if STAGING_COMMANDS & set(sys.argv[1:2]):
        text += (
            " Every finished step is staged and the published tables are unchanged. "
            "[bold]Run the same command again: it continues where it stopped.[/bold]"
        )
    Console(stderr=True).print(text, soft_wrap=True)
    return EXIT_INTERRUPTED
