"""A group of commands, each imported when it is called: the list of them and ``--help`` import none."""

from __future__ import annotations

from importlib import import_module

import click


class LazyCommand(click.Command):
    """A command's name and its line in the list, until it is called.

    Args:
        place: where the command itself is, as ``module:attribute``.
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
        """The command that was asked for, imported; an unknown one is answered with the nearest name."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, LazyCommand) else command, rest
