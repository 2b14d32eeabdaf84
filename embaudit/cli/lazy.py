"""A command group that imports a command when it is called; ``--help`` imports none."""

from __future__ import annotations

from importlib import import_module

import click


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
    from embaudit.cli.helped import HelpedCommand

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
