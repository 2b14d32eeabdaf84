"""Copies of `python -m benchmarks defects`: all can be made, small where they can be, and the original stays."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from benchmarks.defects.command import COPIES, DEFECTS
from benchmarks.defects.copies import WEIGHTS, Copy
from benchmarks.defects.harm import COUNTS, Harm, Yardstick, scored_pairs
from benchmarks.defects.harmless import HARMLESS_COPIES
from embaudit.checkpoint import Checkpoint

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
