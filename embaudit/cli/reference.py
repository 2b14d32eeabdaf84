"""Commands and settings as pages: ``docs/commands.md`` and ``docs/settings.md``, which ``make docs`` writes."""

from __future__ import annotations

from collections.abc import Iterator

import click

from embaudit.cli.lazy import LazyCommand
from embaudit.cli.main import cli

WIDTH = 100
COMMANDS = """# Commands

Written by `make docs` from the commands themselves. Exit codes: 0 done, 1 a check failed or a gate tripped, 2 usage or
environment, 130 interrupted. An error is one paragraph on stderr: what happened, what was kept, what to type next.

"""
SETTINGS = """# Settings

Written by `make docs` from the settings themselves. There are three kinds: where things are on this machine, what one
audit is asked, and how much a measure computes. A key that does not exist, and a value that does not fit, is an error
with the name of the nearest one that does.
"""
ENVIRONMENT = """## This machine: environment variables

| variable | default | what it says |
|---|---|---|
"""
REQUEST = """## One audit: its request

The options of `embaudit audit` ([commands.md](commands.md)) under these names: keyword arguments of
`embaudit.audit` ([python.md](python.md)), `[settings]` of a watch list ([watch.md](watch.md)), and the field `request`
of a deployment ([operate.md](operate.md)), which has `checkpoint` beside them.

| key | default | what it says |
|---|---|---|
"""
PROFILE = """## A measure: its part of a profile

`--profile` takes a name or a TOML file of your own: `name`, `version`, `description`, and a table for each measure that
is to differ from the defaults. One request changes single values by `measure_settings`. An empty cell is the value to
its left.

```toml
name = "mine"
version = 1
description = "more draws behind each verdict, and SOCM of more texts"

[sticky]
validation_draws = 120

[socm]
texts = 2000
```
"""


def commands_page() -> str:
    """Every command's help."""
    parts = [f"## {path}\n\n```\n{text.strip()}\n```\n" for path, text in _helps(cli, "embaudit")]
    return COMMANDS + "\n".join(parts)


def settings_page() -> str:
    """Every setting with its default and its meaning."""
    return "\n".join([SETTINGS, *_environment(), *_request(), PROFILE, *_measures()])


def _helps(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[tuple[str, str]]:
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
                yield from _helps(found, child, context)


def _environment() -> Iterator[str]:
    from embaudit.settings import Settings

    fields = Settings.model_fields
    # A default that is made of another setting is said in words.
    defaults = {name: "" if one.default_factory else _shown(one.default) for name, one in fields.items()}
    lines = (_row(f"EMBAUDIT_{name.upper()}", defaults[name], one.description) for name, one in fields.items())
    yield ENVIRONMENT + "".join(lines)


def _request() -> Iterator[str]:
    from embaudit.request import AuditSettings

    lines = (_row(name, _shown(one.default), one.description) for name, one in AuditSettings.model_fields.items())
    yield REQUEST + "".join(lines)


def _measures() -> Iterator[str]:
    from embaudit.measures import MEASURES
    from embaudit.profile import load_profile, profile_names

    names = profile_names()
    profiles = [load_profile(name) for name in names]
    for name, measure in MEASURES.items():
        yield f"### `[{name}]`\n\n{measure.question}\n"
        head = f"| key | {' | '.join(f'`{one}`' for one in names)} | what it says |\n|{'---|' * (len(names) + 2)}\n"
        lines = []
        for key, field in measure.settings.model_fields.items():
            values = [_shown(getattr(getattr(profile, name), key)) or "none" for profile in profiles]
            cells = [value if i == 0 or value != values[i - 1] else "" for i, value in enumerate(values)]
            lines.append(_row(key, *cells, field.description))
        yield head + "".join(lines)


def _shown(value: object) -> str:
    """A value as a file of settings has it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple | list):
        return f"`[{', '.join(repr(one) if isinstance(one, str) else str(one) for one in value)}]`"
    return f"`{value}`" if value != {} else "`{}`"


def _row(name: str, *cells: str | None) -> str:
    return f"| `{name}` | {' | '.join((cell or '').replace('|', chr(92) + '|') for cell in cells)} |\n"


if __name__ == "__main__":
    import sys

    click.echo({"commands": commands_page, "settings": settings_page}[sys.argv[1]](), nl=False)
