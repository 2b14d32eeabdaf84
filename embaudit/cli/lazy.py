"""A command group that imports a command when it is called; ``--help`` imports none."""

from __future__ import annotations

from importlib import import_module

import click


class LazyCommand(click.Command):
    """A placeholder with a command's name and line of help, until it is called.

    Args:
        place: the command's ``module:attribute``.
    """

    def __init__(self, name: str, short_help: str, place: str) -> None:
        super().__init__(name, short_help=short_help)
        self.place = place

    def load(self) -> click.Command:
        """Import the command."""
        module, _, attribute = self.place.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command


class LazyGroup(click.Group):
    """A group whose commands may be ``LazyCommand``s."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Import the command; click suggests the closest name for an unknown one."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, LazyCommand) else command, rest
