"""A command's ``--help`` as a stranger reads it: examples first, then its options by what they are about."""

from __future__ import annotations

from typing import Self

import click

from embaudit.cli.examples import EXAMPLES

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
