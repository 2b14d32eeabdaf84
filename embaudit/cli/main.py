"""``embaudit``: the list of commands, and what an ending looks like.

Expected failures print one paragraph and no traceback. Exit codes: 0 done, 1 a check or gate failed, 2 usage or
environment, 130 interrupted.
"""

from __future__ import annotations

import os
import sys

import click

from embaudit.cli.against import against
from embaudit.cli.apply_temperature import apply_temperature
from embaudit.cli.audit import audit
from embaudit.cli.doctor import doctor
from embaudit.cli.ingest import ingest
from embaudit.cli.list import list_
from embaudit.cli.query import query
from embaudit.cli.scores import scores
from embaudit.cli.show import show
from embaudit.cli.simulate import simulate
from embaudit.cli.tempscale import tempscale
from embaudit.cli.token import token
from embaudit.cli.upgrade import upgrade
from embaudit.errors import EXIT_INTERRUPTED, EmbauditError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="embaudit")
def cli() -> None:
    """Audit text-embedding checkpoints: sticky tokens, and what mean pooling throws away.

    Start with: embaudit audit packaged:all-MiniLM-L6-v2
    """


for command in (
    *(audit, token, against, show, list_, query, scores, ingest, upgrade),
    *(tempscale, apply_temperature, simulate, doctor),
):
    cli.add_command(command)


def main() -> None:
    """Run a command and turn its ending into a paragraph and an exit code."""
    try:
        code = cli(standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        sys.exit(interrupted())
    except EmbauditError as error:
        if is_of_interrupt(error):
            sys.exit(interrupted())
        print_failure(error)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader has gone (`embaudit query … | head`): nothing is left to say, and nowhere to say it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except Exception as error:
        if is_of_interrupt(error):
            sys.exit(interrupted())
        raise
    sys.exit(code if isinstance(code, int) else 0)


def print_failure(error: EmbauditError) -> None:
    """One paragraph: what happened, what was kept, what to type."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    parts = [Text("Error: ", style="bold red"), Text(error.happened)]
    if error.kept:
        parts += [Text(" "), Text(error.kept)]
    if error.next_step:
        parts += [Text(" "), Text(error.next_step, style="bold")]
    console.print(Text.assemble(*parts), soft_wrap=not console.is_terminal)


def is_of_interrupt(error: BaseException) -> bool:
    """Whether Ctrl-C began the chain of errors that ends in this one.

    Prefect 3.8 cleans up after an interrupt between two tasks with objects that it had not made yet, and what comes
    out is the error of the cleaning up.
    """
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, KeyboardInterrupt):
            return True
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
    return False


def interrupted() -> int:
    """What an interrupt leaves behind."""
    from rich.console import Console

    Console(stderr=True).print(
        "\nInterrupted. Every finished step is staged and the published tables are as they were. "
        "[bold]Run the same command again: it continues where it stopped.[/bold]",
        soft_wrap=True,
    )
    return EXIT_INTERRUPTED
