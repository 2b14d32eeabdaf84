"""An audit's time, from its plan."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from embaudit.checkpoint.precision import operations_per_second
from embaudit.measures.workload import Readable, Work
from embaudit.profile import load_profile
from embaudit.request import AuditRequest
from embaudit_flows import estimate
from embaudit_flows.estimate import HowLong, rounded, work_of
from embaudit_flows.plan import plan_audit

READABLE = Readable(
    layers=6,
    heads=72,
    hidden_size=384,
    vocabulary=30_522,
    searched=30_522,
    max_length=256,
    rows={"wikipedia": 100, "longdocs": 10},
    tokens={"wikipedia": 30.0, "longdocs": 600.0},
)


def test_a_token_takes_two_operations_a_weight_and_its_attention() -> None:
    # all-MiniLM-L6-v2 has 6 layers of four 384 x 384 and two 384 x 1536 matrices. A token meets 33 others twice.
    per_token = 2 * 6 * (4 * 384 * 384 + 2 * 384 * 1536) + 6 * 2 * 2 * 33 * 384
    assert READABLE.seconds([Work(10, 33)], 1e9, 1) == pytest.approx(10 * 33 * per_token / 1e9)


def test_work_beside_encoding_is_shared_by_the_cores() -> None:
    assert READABLE.seconds([Work(0, 0, core_seconds=30), Work(0, 0, core_seconds=10)], 1e9, 4) == 10


def test_a_corpus_is_read_as_far_as_it_goes_and_its_texts_as_far_as_they_are_read() -> None:
    assert READABLE.read("wikipedia", 1_000) == Work(100, 30)
    assert READABLE.read("longdocs", 5, times=3) == Work(15, 256)
    assert READABLE.read("longdocs", 5, up_to=512) == Work(5, 512)
    assert replace(READABLE, max_length=16).read("wikipedia", 1) == Work(1, 16)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.2, "10 s"), (14, "10 s"), (89, "90 s"), (90, "2 min"), (299, "5 min"), (5_000, "83 min"), (5_500, "2 h")],
)
def test_no_time_is_said_more_exactly_than_it_is_known(seconds: float, said: str) -> None:
    assert rounded(seconds) == said


@pytest.mark.parametrize("widths", [(64, 256), (100, 300), (384, 1536)])
def test_this_machine_computes_a_layer(widths: tuple[int, int]) -> None:
    assert 1e7 < operations_per_second("cpu", "float32", widths) < 1e15


def test_what_measures_share_is_counted_for_the_first_of_them() -> None:
    profile = load_profile("probes")
    readable = replace(
        READABLE, rows={**READABLE.rows, "retrieval": 500}, tokens={**READABLE.tokens, "retrieval": 90.0}
    )
    work = work_of(profile, profile.measures, readable)
    assert [name for name, parts in work.items() if any(one.is_shared for one in parts)] == ["surface"]
    alone = work_of(profile, ["compression"], readable)["compression"]
    assert sum(one.texts for one in alone if one.is_shared) == 500


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ([1e11, 1.1e11], None),
        ([1e11, 4e11], r"Now about 2 min \(sticky 2 min, .*\) left, not 8 min: this machine is faster than it was"),
        ([4e11, 1e11], r"Now about 8 min \(sticky 7 min, .*\) left, not 2 min: this machine is slower than it was"),
    ],
)
def test_the_rest_is_estimated_again_before_what_takes_long(
    monkeypatch: pytest.MonkeyPatch, rates: list[float], said: str | None
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(estimate, "say", lines.append)
    monkeypatch.setattr(estimate, "operations_per_second", lambda *_: rates.pop(0))
    plan = plan_audit(AuditRequest.of(checkpoint="packaged:all-MiniLM-L6-v2", profile="quick"))
    rows, tokens = (dict.fromkeys(plan.corpus_names, size) for size in (400, 30.0))
    how_long = HowLong(plan, replace(READABLE, rows=rows, tokens=tokens))
    assert lines.pop().startswith("This takes about ")
    for name in plan.measures:
        how_long.before(name)
    assert len(lines) == (said is not None)
    assert all(re.match(said or "", line) for line in lines)
