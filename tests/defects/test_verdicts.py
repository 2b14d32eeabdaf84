"""`python -m benchmarks defects`: how it judges what a check says, what it prints, and how a stopped run continues."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest

from benchmarks.defects.command import COPIES, DEFECTS, main, misses, totals
from benchmarks.defects.copies import WEIGHTS, Copy
from benchmarks.defects.harm import COUNTS, Harm, Yardstick, scored_pairs
from benchmarks.defects.harmless import HARMLESS_COPIES
from benchmarks.defects.kept import Kept
from benchmarks.defects.verdicts import BROKEN, LOOK, Outcome, Said
from embaudit.checkpoint import Checkpoint
from embaudit.declared.rule import Finding


def nothing(folder: Path) -> None:
    """Changes nothing."""


DEFECT, VARIANT = Copy("rounded", "weights", nothing, r"quantis|quantizer"), Copy("shards", "harmless", nothing)
COSTLY, FREE = Harm({"sample": 0.2}, {"plain": 0.3}), Harm({"sample": 0.0}, {"plain": 0.0})
RIGHT = Finding("problem", "The weights were quantised to 4 bits.", name="rounded_weights")
OTHER = Finding("look", "Capitals become [UNK].", name="capitals")
NAMES_A_TENSOR = Finding("problem", "encoder.quantizer.weight holds NaN.", name="not_finite")
CLEAN = Said("nothing found wrong", None, 9.0)


@pytest.mark.parametrize(
    ("copy", "harm", "said", "judged"),
    [
        (DEFECT, COSTLY, Said(BROKEN, RIGHT, 9.0), "right"),
        (DEFECT, COSTLY, Said(LOOK, RIGHT, 9.0), "right"),
        (DEFECT, COSTLY, Said(BROKEN, OTHER, 9.0), "found, misnamed"),
        (DEFECT, COSTLY, Said(BROKEN, None, 9.0), "found, misnamed"),
        (DEFECT, COSTLY, Said(BROKEN, NAMES_A_TENSOR, 9.0), "found, misnamed"),
        # To be looked at, but by no rule that the good checkpoint does not also have.
        (DEFECT, COSTLY, Said(LOOK, None, 9.0), "missed"),
        (DEFECT, COSTLY, CLEAN, "missed"),
        (DEFECT, FREE, CLEAN, "no harm, not found"),
        (DEFECT, FREE, Said(BROKEN, RIGHT, 9.0), "right"),
        (VARIANT, FREE, CLEAN, "right"),
        (VARIANT, FREE, Said(LOOK, OTHER, 9.0), "right"),
        (VARIANT, FREE, Said(BROKEN, OTHER, 9.0), "false alarm"),
        (DEFECT, COSTLY, None, ""),
    ],
)
def test_a_verdict_is_judged(copy: Copy, harm: Harm, said: Said | None, judged: str) -> None:
    assert Outcome(copy, harm, said).judged == judged


def test_totals_count_only_what_costs_and_every_miss_is_told() -> None:
    found = [
        Outcome(DEFECT, COSTLY, Said(BROKEN, RIGHT, 8.0)),
        Outcome(DEFECT, COSTLY, Said(LOOK, OTHER, 9.0)),
        Outcome(DEFECT, Harm(refused="no weights"), CLEAN),
        Outcome(DEFECT, FREE, CLEAN),
        Outcome(VARIANT, FREE, Said(BROKEN, OTHER, 10.0)),
        Outcome(VARIANT, FREE, Said(LOOK, OTHER, 10.0)),
    ]
    assert [line.found for line in totals(found)] == [
        "2 of 3 (67%)",
        "1 of 3 (33%)",
        "1 of 3 (33%)",
        "0 of 1 (0%)",
        "1 of 2 (50%)",
        "1 of 2 (50%)",
        "9.0, 10.0",
    ]
    assert list(misses(found)) == [
        "**rounded** is found, but called something else: “Capitals become [UNK].”",
        "**rounded** costs all (it cannot be loaded) and is not found.",
        "**shards** does no harm and is called a problem: “Capitals become [UNK].”",
    ]


# ---- the command ----


@pytest.mark.slow
def test_each_copy_gets_a_row_with_its_harm(minilm: Checkpoint, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--harm", "--pairs", "10", "--only", "lower-casing lost: in both|git-lfs pointer: weights|unchanged"])
    header, rule, *rows = capsys.readouterr().out.splitlines()
    assert header == "| copy | kind | ρ lost, sample | 1 − cos, farthest kind | counts |"
    assert [line.count("|") for line in (header, rule, *rows)] == [6] * 5
    capitals, pointer, unchanged = rows
    assert "(capitals)" in capitals
    assert capitals.endswith("| yes |")
    assert "not loaded: model.safetensors in the folder is a git-lfs pointer, not the file itself." in pointer
    assert pointer.endswith("| yes |")
    assert "+0.000" in unchanged
    assert unchanged.endswith("| – |")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "no such copy"], "no copy matches 'no such copy'"),
        (["--sts", "nowhere.csv"], "there is no file nowhere.csv"),
    ],
)
def test_mistakes_are_told(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(arguments)
    assert said in capsys.readouterr().err


# ---- a run that was stopped ----


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


# ---- copies of `python -m benchmarks defects`: all can be made, small where they can be, and the original stays ----


# Copies that keep the weights as they are, whatever else they change.
SETTINGS_ALONE = [copy for copy in DEFECTS if copy.kind in ("tokenizer", "pooling", "prompts", "length", "batching")]
SMALL = 2_000_000
# Noise of 1 % of the weights' spread moves emoji by .0011, all else far less.
SAME = 2e-3


def label(copy: Copy) -> str:
    return copy.label


@pytest.fixture
def good(minilm: Checkpoint) -> Path:
    return minilm.resolved.folder


def fingerprints(folder: Path) -> dict[str, str]:
    """Size, time and, below a megabyte, hash of every file: nothing writes 90 MB without changing the time."""
    return {
        str(path.relative_to(folder)): f"{path.stat().st_size} {path.stat().st_mtime_ns} "
        + (hashlib.sha256(path.read_bytes()).hexdigest() if path.stat().st_size < 1_000_000 else "")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def own_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def make(copy: Copy, good: Path, folder: Path) -> None:
    """Make a copy and check that it differs from the original, which is as it was."""
    before = fingerprints(good)
    copy.make(good, folder)
    assert fingerprints(good) == before
    changed = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    gone = before.keys() - {str(path.relative_to(folder)) for path in folder.rglob("*")}
    assert changed or gone or copy.name == "unchanged"
    if (folder / WEIGHTS).is_symlink() and not (folder / "pytorch_model.bin").is_file():
        assert own_bytes(folder) < SMALL


def test_there_are_as_many_as_the_issue_asks_for_and_each_has_a_name_and_a_cause() -> None:
    assert len(DEFECTS) >= 45
    assert len(HARMLESS_COPIES) >= 15
    assert len({copy.label for copy in COPIES}) == len(COPIES)
    assert [copy.label for copy in DEFECTS if not copy.cause or copy.is_harmless] == []
    assert [copy.label for copy in HARMLESS_COPIES if copy.cause or not copy.is_harmless] == []


@pytest.mark.parametrize("copy", [copy for copy in SETTINGS_ALONE if copy.strength != "last 2 522 rows cut"], ids=label)
def test_a_defect_of_the_settings_costs_kilobytes(copy: Copy, good: Path, tmp_path: Path) -> None:
    make(copy, good, tmp_path / "copy")


@pytest.mark.slow
@pytest.mark.parametrize("copy", [copy for copy in COPIES if copy not in SETTINGS_ALONE], ids=label)
def test_a_copy_can_be_made_and_the_original_stays(copy: Copy, good: Path, tmp_path: Path) -> None:
    make(copy, good, tmp_path / "copy")


@pytest.mark.slow
def test_the_original_is_byte_for_byte_what_it_was(good: Path, tmp_path: Path) -> None:
    """The weights too, after a change in place of what was read from them."""
    before = hashlib.sha256((good / WEIGHTS).read_bytes()).hexdigest()
    for place, copy in enumerate(copy for copy in DEFECTS if copy.name in ("every block as initialised", "NaN")):
        copy.make(good, tmp_path / str(place))
    assert hashlib.sha256((good / WEIGHTS).read_bytes()).hexdigest() == before


@pytest.fixture(scope="module")
def yardstick(minilm: Checkpoint) -> Yardstick:
    return Yardstick(minilm.resolved.folder, {"sample": scored_pairs("sample", 50)})


@pytest.mark.slow
@pytest.mark.parametrize("copy", HARMLESS_COPIES, ids=label)
def test_a_harmless_variant_moves_no_text(copy: Copy, good: Path, yardstick: Yardstick, tmp_path: Path) -> None:
    copy.make(good, tmp_path / "copy")
    harm = yardstick.harm(tmp_path / "copy", copy.served_as)
    assert harm.refused == ""
    assert {kind: moved for kind, moved in harm.moved.items() if moved >= SAME and kind not in copy.moves} == {}
    assert abs(harm.lost["sample"]) < COUNTS


@pytest.mark.parametrize(
    ("harm", "counts"),
    [
        (Harm({"sample": 0.0}, {"plain": 0.0}), False),
        (Harm({"sample": 0.009}, {"plain": 0.0099}), False),
        (Harm({"sample": -0.2}, {"plain": 0.0}), False),
        (Harm({"sample": 0.01}, {"plain": 0.0}), True),
        (Harm({"sample": 0.0, "STS": 0.02}, {"plain": 0.0}), True),
        (Harm({"sample": 0.0}, {"plain": 0.0, "capitals": 0.011}), True),
        (Harm({"sample": 0.0}, {"empty": float("inf")}), True),
        (Harm(refused="no weights"), True),
    ],
)
def test_what_counts_as_harm(harm: Harm, counts: bool) -> None:
    assert harm.counts == counts


def test_pairs_are_spread_over_the_whole_corpus() -> None:
    whole, some = scored_pairs("sample", 10_000), scored_pairs("sample", 7)
    assert len(some.firsts) == len(some.seconds) == len(some.scores) == 7
    assert (some.firsts[0], some.firsts[-1]) == (whole.firsts[0], whole.firsts[-1])
    assert np.isfinite(whole.scores).all()
