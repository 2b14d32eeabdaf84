"""A run of `python -m benchmarks defects` that was stopped continues; another measurement starts anew."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

from benchmarks.defects.copies import Copy
from benchmarks.defects.harm import Harm
from benchmarks.defects.kept import Kept
from benchmarks.defects.verdicts import BROKEN, Outcome, Said
from embaudit.declared.rule import Finding

COPY = Copy("rounded", "weights", lambda folder: None, "quantis", "4 bits")
FOUND = Outcome(COPY, Harm({"sample": 0.2}, {"plain": inf}), Said(BROKEN, Finding("problem", "Ganz kaputt – ∞."), 3.5))


def test_what_was_found_is_read_again(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "kept.jsonl", ("sample", 80))
    assert kept.outcome(COPY) is None
    kept.keep(replace(FOUND, said=None))
    assert kept.outcome(COPY) == replace(FOUND, said=None)
    kept.keep(FOUND)
    assert kept.outcome(COPY) == FOUND
    assert kept.outcome(replace(COPY, strength="3 bits")) is None
    assert Kept(kept.path, ("sample", 600)).outcome(COPY) is None


def test_a_second_run_continues(tmp_path: Path, capsys, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    from benchmarks.defects import command

    path = tmp_path / "kept.jsonl"
    only = next(copy for copy in command.COPIES if copy.label == "git-lfs pointer: weights")
    Kept(path, ("sample", 80)).keep(replace(FOUND, copy=only))

    def unexpected(*_: object) -> None:
        raise AssertionError("made again")

    monkeypatch.setattr(command, "Yardstick", unexpected)
    monkeypatch.setattr(command, "ask", unexpected)
    command.main(["--only", only.label, "--pairs", "80", "--keep", str(path)])
    assert "Ganz kaputt" in capsys.readouterr().out
