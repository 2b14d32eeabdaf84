"""``embaudit``: the list of commands, and how errors and interrupts are reported.

Expected failures print one paragraph and no traceback. Exit codes: 0 done, 1 a problem was found (a verdict, a tripped
gate, a flagged text) and nothing else, 2 usage or environment, 3 a bug, 130 interrupted.
"""

from __future__ import annotations

import sys

import click

from embaudit.cli.help import LazyCommand, LazyGroup
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
