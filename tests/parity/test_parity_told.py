"""Every state that a comparison of two functions can have is told in every form, and what is said is true in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from changed_vectors import CHANGES, NO_INSIDE, Changed
from told_in_full import assert_told

from embaudit.checkpoint import Checkpoint
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.measures.quality.material import Material
from embaudit.questions.parity.asking import AGAIN, BatchingCheck
from embaudit.questions.parity.compare import KindDifference
from embaudit.questions.parity.corpora import CorpusDifference
from embaudit.questions.parity.findings import findings_of
from embaudit.questions.parity.parity import ParityReport, compare_with
from embaudit.words.estimate import Estimate

D = 32


def kind(name: str, distances: list[float], failures: dict[int, str] | None = None) -> KindDifference:
    apart = np.array(distances)
    texts = tuple(f"{name} {place}" for place in range(len(apart)))
    return KindDifference(
        name, texts, apart, np.where(np.isnan(apart), np.nan, 1.0), np.ones(len(apart), bool), failures or {}
    )


NONE = Estimate(None)
NAN = float("nan")
SAME = (kind("plain", [0.0, 1e-9]), kind("accents", [1e-9]))
FAR = (kind("plain", [0.0, 1e-9]), kind("accents", [0.4]))
ALL_FAR = (kind("plain", [0.5, 0.3]), kind("accents", [0.4]))
NOTHING = (kind("plain", [NAN, NAN]), kind("accents", [NAN]))
CORPUS = CorpusDifference("pairs of x", 10, 0.1, 0.9, None, {}, "Spearman's ρ", Estimate(0.5), Estimate(0.1))
BARE = CorpusDifference("pairs of x", 2, None, None, None, {}, "Spearman's ρ", NONE, NONE)

# The kinds, both dimensions, how it was asked otherwise, and on what both were tried.
STATES: dict[
    str, tuple[tuple[KindDifference, ...], tuple[int, int], tuple[BatchingCheck, ...], tuple[CorpusDifference, ...]]
] = {
    "the same": (SAME, (D, D), (), ()),
    "one kind is other": (FAR, (D, D), (), (CORPUS,)),
    "every kind is other": (ALL_FAR, (D, D), (), (CORPUS, BARE)),
    "a corpus of which nothing is known": (FAR, (D, D), (), (BARE,)),
    "half precision": ((kind("plain", [1e-4, 2e-4]), kind("accents", [2e-4])), (D, D), (), ()),
    "nothing has a vector": (NOTHING, (D, D), (), ()),
    "another dimension": (NOTHING, (D, D + 1), (), ()),
    "no dimension": (NOTHING, (D, 0), (), ()),
    "one text is refused": ((kind("plain", [0.0, NAN], {1: "status 413."}), SAME[1]), (D, D), (), ()),
    "one text is NaN": ((kind("plain", [0.0, NAN]), SAME[1]), (D, D), (), ()),
    "asked otherwise, the same": (
        SAME,
        (D, D),
        (BatchingCheck("in a batch of mixed length", kind("asking", [0.0])),),
        (),
    ),
    "asked otherwise, another": (
        SAME,
        (D, D),
        (BatchingCheck("in a batch of mixed length", kind("asking", [0.4]), "counts padding in the mean"),),
        (),
    ),
    "asked otherwise, none": (
        SAME,
        (D, D),
        (BatchingCheck("for base64", kind("asking", [NAN], {0: "it is no base64."})),),
        (),
    ),
    "asked otherwise, nothing known": (SAME, (D, D), (BatchingCheck("for base64", kind("asking", [NAN])),), ()),
    "another the next time": (FAR, (D, D), (BatchingCheck(AGAIN, kind("asking", [0.4])),), ()),
    "in roles alone": ((*SAME, kind("as queries", [0.4]), kind("as documents", [0.0])), (D, D), (), ()),
}


def report_of(name: str, **changed: Any) -> ParityReport:
    kinds, dimensions, asked, corpora = STATES[name]
    known = changed.pop("known", "checkpoint")
    return ParityReport(
        checkpoint="tiny",
        checkpoint_id=changed.pop("checkpoint_id", "abc"),
        other="http://localhost",
        kinds=kinds,
        asked=asked,
        corpora=corpora,
        dimensions=dimensions,
        findings=tuple(findings_of(kinds, dimensions, None, asked, known)),
        **changed,
    )


@pytest.mark.parametrize("name", STATES)
def test_a_state_is_told(name: str) -> None:
    assert_told(report_of(name))


@pytest.mark.parametrize("name", ["the same", "every kind is other", "another dimension"])
def test_two_whose_inside_nobody_sees_are_told(name: str) -> None:
    """Of which the first has no identity: no line stands for it."""
    report = report_of(name, checkpoint_id="", inside=False, known="endpoint", requests=1)
    assert_told(report)
    assert "checkpoint" not in dict(report.page().identity)


def test_a_kind_without_a_vector_has_no_farthest_text() -> None:
    (table,) = report_of("another dimension").page().sections[0].parts
    assert "''" not in [cell for row in table.rows for cell in row]  # type: ignore[union-attr]


@pytest.mark.parametrize("explains", [True, False], ids=["explained", "not explained"])
@pytest.mark.parametrize("name", ["longer", "cut", "wider", "NaN"])
def test_a_real_comparison_is_told(name: str, explains: bool, served_checkpoint: Checkpoint) -> None:
    other = Changed(served_checkpoint, name, **NO_INSIDE)
    assert_told(compare_with(CheckpointFunction(served_checkpoint), other, Material(), with_explanation=explains))


@pytest.mark.parametrize("name", CHANGES)
def test_two_functions_without_an_inside_are_told(name: str, served_checkpoint: Checkpoint) -> None:
    first, second = (Changed(served_checkpoint, change, **NO_INSIDE) for change in ("itself", name))
    assert_told(compare_with(first, second, Material()))


def test_what_is_close_to_nothing_is_no_explanation(served_checkpoint: Checkpoint) -> None:
    report = compare_with(
        CheckpointFunction(served_checkpoint), Changed(served_checkpoint, "wider", **NO_INSIDE), Material()
    )
    assert "Closest" not in report.line
    assert "No way to use the checkpoint that was tried gives such vectors." in report.line
