"""What is shown of an audit's progress: bars in a terminal, a line per measure elsewhere, and in a notebook."""

from __future__ import annotations

import io
import logging
import re
import sys
import warnings
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console
from small_audits import AskedAgain, Audited

import embaudit as library
from embaudit.api.audit import NotebookDisplay, shown_to_caller
from embaudit.cli.waiting import TerminalDisplay
from embaudit.measures import MEASURES
from embaudit.steps.progress import measuring, show, shown_on


@pytest.mark.parametrize(
    ("is_terminal", "logs", "expected"),
    [
        (False, False, ["socm of tiny: 12 s", "about 1 min"]),
        (False, True, ["pairs: 10 in 0 s", "socm of tiny: 12 s", "about 1 min"]),
        (True, False, ["about 1 min"]),
        (True, True, ["about 1 min"]),
    ],
)
def test_lines(is_terminal: bool, logs: bool, expected: list[str]) -> None:
    output = io.StringIO()
    console = Console(file=output, force_terminal=is_terminal, width=100)
    with TerminalDisplay(console, show_steps=logs) as display:
        for _ in range(2):
            display.advance("pairs", 5, 10)
        display.measured("socm of tiny", 12.3)
        display.say("about 1 min")
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output.getvalue()).replace("\r", "\n").split("\n")
    # Bars are lines of their own, with a rate.
    assert [line.strip() for line in lines if line.strip() and "/10" not in line] == expected


def test_a_log_says_every_minute_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("embaudit.cli.waiting.time.monotonic", lambda: clock[0])
    output = io.StringIO()
    display = TerminalDisplay(Console(file=output, width=100))
    for clock[0] in (30.0, 61.0, 100.0, 125.0):
        display.advance("scan, shards", 1, 8)
    # Another stage of the same name counts for itself.
    for clock[0] in (190.0, 251.0):
        display.advance("scan, shards", 3, 3)
    said = ["scan, shards: 2 of 8", "scan, shards: 4 of 8", *["scan, shards: 3 of 3"] * 2]
    assert output.getvalue().splitlines() == said


def test_a_program_is_told_in_its_log_and_warned(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "embaudit")
    with shown_to_caller(), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        show("This takes about 1 min.")
        with measuring("socm of tiny"):
            pass
        assert [record.getMessage() for record in caplog.records] == ["This takes about 1 min.", "socm of tiny: 0 s"]
        show("tiny: Do not serve: its layers were never trained.", logging.WARNING)
    # Python's own, which are seen where no logging is set up.
    assert [str(one.message) for one in warned] == ["tiny: Do not serve: its layers were never trained."]
    # Who shows it in another way goes on to do so.
    output = io.StringIO()
    with shown_on(NotebookDisplay(output)), shown_to_caller():
        show("tiny: Do not serve.", logging.WARNING)
    assert shown(output.getvalue()) == ["tiny: Do not serve.", ""]


def shown(text: str) -> list[str]:
    """The lines as a notebook shows them: a carriage return starts the line anew."""
    lines = []
    for line in text.split("\n"):
        cells: list[str] = []
        for part in line.split("\r"):
            cells[: len(part)] = part
        lines.append("".join(cells).rstrip())
    return lines


def test_lines_of_a_notebook() -> None:
    output = io.StringIO()
    display = NotebookDisplay(output)
    display.say("This takes about 1 min.")
    display.advance("a step with a long name", 5, 10)
    assert shown(output.getvalue()) == ["This takes about 1 min.", "a step with a long name: 50%"]
    display.measured("socm", 3.4)
    display.clear()
    assert shown(output.getvalue()) == ["This takes about 1 min.", "socm: 3 s", ""]


def test_an_audit_prints_a_line_for_each_measure(asked_again: AskedAgain) -> None:
    told = asked_again.said.stderr.splitlines()
    names = [line.split(" of ")[0] for line in told if re.fullmatch(r"\w+ of \S+: \d+ s", line)]
    assert names == [name for name, measure in MEASURES.items() if measure.is_default]
    assert len(told) < len(names) + 5, told


def test_a_resumed_audit_says_at_once_what_its_checkpoint_is(asked_again: AskedAgain, audited: Audited) -> None:
    told = asked_again.said.stderr.splitlines()
    verdict = audited.outcome.verdict["line"]
    assert verdict.startswith("Do not serve: ")
    (said,) = (line for line in told if verdict in line)
    # After integrity, which found it, and before quality.
    names = [line.split(" of ")[0] for line in told]
    assert names.index("integrity") < told.index(said) < names.index("quality")
    # Everything is there already: nothing is known to take long.
    assert said.endswith(
        "The rest is being measured; if you stop it here (Ctrl-C), what is measured is kept, and the same command "
        "continues."
    )
    assert f"Verdict: {verdict}" in asked_again.said.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("is_notebook", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_call_shows_progress_in_a_notebook_alone(
    is_notebook: bool, audited: Audited, audited_home: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    if is_notebook:
        monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    question = dict(audited.question)
    library.audit(question.pop("checkpoint"), question.pop("profile"), measures=["socm"], device="cpu")
    printed = capsys.readouterr().out
    assert bool(re.search(r"socm of \S+tiny: \d+ s\n", printed)) is is_notebook
    assert is_notebook or not printed
