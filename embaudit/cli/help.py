"""A command's ``--help`` as a stranger reads it: examples first, then its options by what they are about.

What people type, by command: the first lines of each command's help.

A command group that imports a command when it is called; ``--help`` imports none.
"""

from __future__ import annotations

from importlib import import_module
from typing import Self

import click

from embaudit.questions.names import NAMES

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
