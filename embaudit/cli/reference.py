"""Every command's help as one page: ``docs/commands.md``, which ``make docs`` writes."""

from __future__ import annotations

from collections.abc import Iterator

import click

from embaudit.cli.lazy import LazyCommand
from embaudit.cli.main import cli

WIDTH = 100
HEADER = """# Commands

Written by `make docs` from the commands themselves. Exit codes: 0 done, 1 a check failed or a gate tripped, 2 usage or
environment, 130 interrupted. An error is one paragraph on stderr: what happened, what was kept, what to type next.

"""


def helps(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[tuple[str, str]]:
    """A command's name and help, then those of its subcommands."""
    if isinstance(command, LazyCommand):
        command = command.load()
    context = command.make_context(
        name, [], parent, resilient_parsing=True, terminal_width=WIDTH, max_content_width=WIDTH
    )
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            if found is not None:
                yield from helps(found, child, context)


def page() -> str:
    """The whole page."""
    parts = [f"## {path}\n\n```\n{text.strip()}\n```\n" for path, text in helps(cli, "embaudit")]
    return HEADER + "\n".join(parts)


if __name__ == "__main__":
    click.echo(page(), nl=False)
