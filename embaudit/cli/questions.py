"""The commands that ask one question: their options and help are those of the questions."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from embaudit.cli.options import OUTPUT, visible
from embaudit.cli.question import question_command, reporting_command, show_report
from embaudit.questions.asked import QUESTIONS
from embaudit.questions.check.question import CheckQuestion
from embaudit.questions.fingerprint.question import FingerprintQuestion
from embaudit.questions.passport.question import PassportQuestion

if TYPE_CHECKING:
    from embaudit.questions.check.check import CheckReport
    from embaudit.questions.passport.passport import Passport
    from embaudit.questions.vectors.fingerprint import Fingerprint

CARD = click.Option(
    ["--card", "is_card"], is_flag=True, help="Print a block for a model card, with the verdict as its badge."
)
# Where a command writes a passport, if nobody says.
PASSPORT = "passport.json"


def _show_check(question: CheckQuestion, report: CheckReport, is_card: bool, **form: bool | Path | None) -> int:
    if not is_card:
        return show_report(question, report, **form)
    from datetime import UTC, datetime

    from embaudit.pages.ci import card_of

    click.echo(card_of(report, datetime.now(UTC).date()), nl=False)
    return report.exit_code


def _say_written(question: PassportQuestion, made: Passport) -> None:
    out, reading = Path(question.out or PASSPORT), made.reading
    click.echo(
        visible(
            f"{out}: {len(made.canaries)} texts of {len(made.kinds)} kinds, {reading.dimension} dimensions"
            f"{', normalised' if reading.is_normalised else ''}, {out.stat().st_size / 1000:.0f} kB. "
            f"Next: embaudit verify {out} --with http://localhost:8080"
        )
    )


def _say_known(question: FingerprintQuestion, made: Fingerprint) -> None:
    from embaudit.questions.fingerprint.make import told_of
    from embaudit.questions.vectors.fingerprint_file import own_file

    size = question.path.stat().st_size / 1000
    lines = [f"{question.path}: {size:.0f} kB. {told_of(made)}"]
    if question.out is None:
        lines.append("Next: embaudit vectors STORE")
    else:
        lines.append(f"To have it known here: cp {quote(str(question.out))} {quote(str(own_file(made.model)))}")
    click.echo(visible(" ".join(lines)))


check = question_command(CheckQuestion, CARD, *OUTPUT, finish=_show_check)
fingerprint = question_command(FingerprintQuestion, finish=_say_known)
passport = question_command(PassportQuestion, finish=_say_written, always={"out": PASSPORT})


def __getattr__(name: str) -> click.Command:
    """The command of any other question."""
    if name not in QUESTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return reporting_command(QUESTIONS[name])
