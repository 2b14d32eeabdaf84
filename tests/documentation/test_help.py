"""Every command's help as a stranger reads it: examples that are commands, and options under what they are about."""

from __future__ import annotations

import shlex

import click
import pytest

from embaudit.cli.main import COMMANDS, EXAMPLES, HEADINGS, OWN, cli


def every() -> dict[str, tuple[click.Command, click.Context]]:
    """Each command that does something, by its path, in a context of its own."""
    top = click.Context(cli, info_name="embaudit", terminal_width=100, max_content_width=100)
    found = {}
    for name in (name for group in COMMANDS.values() for name in group):
        _, command, _ = cli.resolve_command(top, [name])
        context = click.Context(command, top, info_name=name)
        if isinstance(command, click.Group):
            for own, one in command.commands.items():
                found[f"{name} {own}"] = (one, click.Context(one, context, info_name=own))
        else:
            found[name] = (command, context)
    return found


EVERY = every()


def test_every_command_has_examples_and_no_other_name_has() -> None:
    assert set(EXAMPLES) == set(EVERY)


@pytest.mark.parametrize("name", EVERY)
def test_examples_come_before_options_and_are_read_by_the_command(name: str) -> None:
    command, context = EVERY[name]
    text = command.get_help(context)
    assert text.index("Examples:") < text.index(f"\n{OWN}:" if f"\n{OWN}:" in text else "\nOutput:")
    for line in EXAMPLES[name]:
        assert f"$ embaudit {line}\n" in text
        words = shlex.split(line)[len(name.split()) :]
        command.make_parser(context).parse_args(words)


@pytest.mark.parametrize("name", EVERY)
def test_every_option_is_listed_once_and_says_what_it_is(name: str) -> None:
    command, context = EVERY[name]
    text = command.get_help(context)
    for option in command.get_params(context):
        if isinstance(option, click.Option):
            assert option.help, f"{name} {option.opts}"
            assert text.count(f"\n  {option.opts[0]}") + text.count(f", {option.opts[-1]}") >= 1
    sections = [line.removesuffix(":") for line in text.split("\n") if line.endswith(":") and not line.startswith(" ")]
    assert [one for one in sections if one in (OWN, *HEADINGS)] == sorted(
        (one for one in sections if one in (OWN, *HEADINGS)), key=[OWN, *HEADINGS].index
    )


def test_headings_share_no_option() -> None:
    names = [name for some in HEADINGS.values() for name in some]
    assert len(set(names)) == len(names)
