"""Broken and harmless copies of the packaged checkpoint: which findings each must have, and which none may have."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import torch
from broken_copies import BROKEN, HARMLESS, copy_of_packaged

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.measures.quality.material import Material, sample_material
from embaudit.measures.quality.quality import QualityReport, quality_findings

Report = Callable[[str], QualityReport]
LEVELS = ("ok", "not measured", "look", "problem")


@pytest.fixture(autouse=True, scope="module")
def _two_threads() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(min(threads, 2))
    yield
    torch.set_num_threads(threads)


def report_on(folder: Path, material: Material) -> QualityReport:
    checkpoint = load_checkpoint(str(folder), LoadOptions(device="cpu"))
    return quality_findings(Encoder(checkpoint), material)


@pytest.fixture(scope="session")
def quality_of_copy(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report on a copy, on the whole sample; made once."""

    @cache
    def report(name: str) -> QualityReport:
        folder = copy_of_packaged(tmp_path_factory.mktemp("copy"), (BROKEN | HARMLESS)[name])
        return report_on(folder, sample_material())

    return report


def part_of_sample() -> Material:
    """150 pairs and 20 queries: a fraction of the time, and enough for the worst and the best."""
    material = sample_material()
    collection, _ = material.collections[0].first(20, 40)
    return Material((material.pairs[0].first(150),), (collection,))


def levels(report: QualityReport) -> dict[str, str]:
    return {finding.name: finding.level for finding in report.findings}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("as published", {"no_better_than_words": "ok", "lost_in_layer": "ok", "collapsed": "ok"}),
        pytest.param("all random", {"no_better_than_words": "problem"}, marks=pytest.mark.slow),
    ],
)
def test_a_part_of_the_sample_tells_the_best_from_the_worst(
    tmp_path: Path, name: str, expected: dict[str, str]
) -> None:
    found = levels(report_on(copy_of_packaged(tmp_path / "copy", (BROKEN | HARMLESS)[name]), part_of_sample()))
    assert {rule: found[rule] for rule in expected} == expected
    assert ("problem" in found.values()) == (name in BROKEN)


# At least at this level. Not found by these rules, but by the weights and the tokenizer (``integrity``): the last two
# layers swapped and a random layer in the middle, which leave ρ within .03 and every layer better than the last.
MUST_APPEAR = {
    "all random": {"no_better_than_words": "problem", "collapsed": "problem"},
    "encoder random": {"no_better_than_words": "problem", "collapsed": "problem", "lost_in_layer": "problem"},
    "last layer random": {"no_better_than_words": "look", "lost_in_layer": "look", "collapsed": "look"},
    "layers reversed": {"no_better_than_words": "problem", "lost_in_layer": "problem"},
    "vocabulary shuffled": {"no_better_than_words": "problem", "collapsed": "problem"},
    "noise of half the spread": {"no_better_than_words": "problem", "lost_in_layer": "problem"},
    "cls instead of mean": {"better_pooling": "problem"},
    "lower-casing lost": {"better_case": "problem"},
    "cut at 16 tokens": {"cut_texts": "problem"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUST_APPEAR)
def test_a_broken_copy_has_its_finding(quality_of_copy: Report, name: str) -> None:
    found = levels(quality_of_copy(name))
    for rule, level in MUST_APPEAR[name].items():
        assert LEVELS.index(found[rule]) >= LEVELS.index(level)


@pytest.mark.slow
@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_copy_has_no_problem(quality_of_copy: Report, name: str) -> None:
    report = quality_of_copy(name)
    found = levels(report)
    expected = {"collapsed": "look"} if name == "offset" else {}
    assert {rule: level for rule, level in found.items() if level != "ok"} == expected
    json.dumps(report.figures)
