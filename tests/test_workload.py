"""An audit's time, from its plan."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embaudit.checkpoint import Checkpoint, precision
from embaudit.checkpoint.precision import ProductSeconds, operations_per_second
from embaudit.measures.listed import load_profile
from embaudit.measures.measure import BESIDE_LAYERS, Precision, Readable, Work
from embaudit.measures.sticky import StickySettings
from embaudit.measures.sticky.steps import candidates
from embaudit.questions.audit import AuditRequest
from embaudit.steps.results import CheckpointSpec
from embaudit_flows import measure
from embaudit_flows.measure import HowLong, mean_tokens, rounded, work_of
from embaudit_flows.plan import AuditPlan, plan_audit
from embaudit_tasks.steps import ingest_corpus

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


def planned(scan_dtype: str = "auto", **asked: Any) -> AuditPlan:
    asked["measure_settings"] = {"sticky": {"scan_dtype": scan_dtype}}
    return plan_audit(AuditRequest.of(checkpoint="packaged:all-MiniLM-L6-v2", profile="quick", **asked))


def read_by(plan: AuditPlan) -> Readable:
    rows, tokens = (dict.fromkeys(plan.corpus_names, size) for size in (400, 30.0))
    return replace(READABLE, rows=rows, tokens=tokens)


def test_a_token_takes_two_operations_a_weight_and_its_attention() -> None:
    # all-MiniLM-L6-v2 has 6 layers of four 384 x 384 and two 384 x 1536 matrices. A token meets 33 others twice.
    per_token = 2 * 6 * (4 * 384 * 384 + 2 * 384 * 1536) + 6 * 2 * 2 * 33 * 384 + BESIDE_LAYERS * 6 * 384
    assert READABLE.seconds([Work(10, 33)], {"audit": 1e9}, 1) == pytest.approx(10 * 33 * per_token / 1e9)


def test_work_beside_encoding_is_shared_by_the_cores() -> None:
    assert READABLE.seconds([Work(0, 0, core_seconds=30), Work(0, 0, core_seconds=10)], {"audit": 1e9}, 4) == 10


def test_each_piece_of_work_takes_its_time_at_the_rate_of_its_precision() -> None:
    rates: dict[Precision, float] = {"audit": 1e9, "scan": 4e9, "float32": 2e9}
    alone = {name: READABLE.seconds([Work(100, 20, runs_in=name)], rates, 2) for name in rates}
    # What a token costs beside its layers is no faster in half precision.
    beside = READABLE.beside_layers(Work(100, 20)) / rates["float32"]
    assert alone["audit"] - beside == pytest.approx(4 * (alone["scan"] - beside))
    assert alone["audit"] - beside == pytest.approx(2 * (alone["float32"] - beside))
    together = [Work(100, 20, runs_in=name) for name in rates]
    assert READABLE.seconds(together, rates, 2) == pytest.approx(sum(alone.values()))


def test_a_corpus_is_read_as_far_as_it_goes_and_its_texts_as_far_as_they_are_read() -> None:
    assert READABLE.read("wikipedia", 1_000) == Work(100, 30)
    assert READABLE.read("longdocs", 5, times=3) == Work(15, 256)
    assert READABLE.read("longdocs", 5, up_to=512) == Work(5, 512)
    assert replace(READABLE, max_length=16).read("wikipedia", 1) == Work(1, 16)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        *((0.2, "10 s"), (14, "10 s"), (89, "90 s"), (90, "1.5 min"), (120, "2 min"), (148, "2.5 min")),
        *((299, "5 min"), (400, "7 min"), (5_000, "83 min"), (5_500, "1.5 h"), (36_000, "10 h")),
    ],
)
def test_no_time_is_said_more_exactly_than_it_is_known(seconds: float, said: str) -> None:
    assert rounded(seconds) == said


def test_rounding_takes_little_of_what_is_known() -> None:
    units = {"s": 1, "min": 60, "h": 3_600}
    for seconds in np.geomspace(30, 100_000, 2_000):
        count, unit = rounded(seconds).split()
        assert 6 / 7 <= float(count) * units[unit] / seconds <= 7 / 6


@pytest.mark.parametrize("widths", [(64, 256), (100, 300), (384, 1536)])
def test_this_machine_computes_a_layer(widths: tuple[int, int]) -> None:
    assert 1e7 < operations_per_second("cpu", "float32", widths) < 1e15


def test_throughput_is_operations_by_the_time_of_the_fastest_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden, tokens = 64, precision.TOKENS_PER_BATCH["cpu"] // precision.TEXT_TOKENS * precision.TEXT_TOKENS
    # The first layer warms up; of the others one takes .25 s, and the rest .5 s.
    took = [9.0, *([0.5] * (precision.REPEATS - 1)), 0.25]
    clock = iter(accumulate(chain.from_iterable((1.0, seconds) for seconds in took)))
    monkeypatch.setattr(precision.time, "perf_counter", lambda: next(clock))
    operations = tokens * (24 * hidden**2 + 4 * precision.TEXT_TOKENS * hidden)
    assert operations_per_second("cpu", "float32", (hidden, 4 * hidden)) == pytest.approx(operations / 0.25)


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
        ([1e11, 4e11], r"Now about 2.5 min \(sticky 2 min, .*\) left, not 9 min: this machine is faster than it was"),
        ([4e11, 1e11], r"Now about 9 min \(sticky 8 min, .*\) left, not 2.5 min: this machine is slower than it was"),
    ],
)
def test_the_rest_is_estimated_again_before_what_takes_long(
    monkeypatch: pytest.MonkeyPatch, rates: list[float], said: str | None
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(measure, "say", lines.append)
    monkeypatch.setattr(measure, "operations_per_second", lambda *_: rates.pop(0))
    plan = planned(scan_dtype="float32", device="cpu")
    how_long = HowLong(plan, read_by(plan))
    assert lines.pop().startswith("This takes about ")
    for name in plan.measures:
        how_long.before(name)
    assert len(lines) == (said is not None)
    assert all(re.match(said or "", line) for line in lines)


def test_the_rest_after_the_verdict_is_as_it_looks_then_and_not_said_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    rates = [1e11, 4e11]
    monkeypatch.setattr(measure, "say", lines.append)
    monkeypatch.setattr(measure, "operations_per_second", lambda *_: rates.pop(0))
    plan = planned(scan_dtype="float32", device="cpu")
    how_long = HowLong(plan, read_by(plan))
    assert how_long.rest(["integrity", "quality"]) == "2.5 min"
    how_long.before("sticky")
    assert not rates
    assert len(lines) == 1
    # Nothing is left to be measured but a little: no need to look again.
    assert how_long.rest(plan.measures) == "20 s"


# What half precision gains here, what is asked for, and the dtype of each piece of work of the audit that follows.
PRECISIONS = [
    # Where it is clearly faster, search and validation run in it: everything else as the audit.
    (4.0, {}, {"audit": "float32", "scan": "bfloat16", "float32": "float32"}),
    # Without such units, or with as good as none, they fall back.
    (0.2, {}, {"audit": "float32", "scan": "float32", "float32": "float32"}),
    (1.4, {}, {"audit": "float32", "scan": "float32", "float32": "float32"}),
    # Whoever asks for a precision gets it, whatever it gains.
    (4.0, {"scan_dtype": "float32"}, {"audit": "float32", "scan": "float32", "float32": "float32"}),
    (0.2, {"scan_dtype": "bfloat16"}, {"audit": "float32", "scan": "bfloat16", "float32": "float32"}),
    # Integrity and quality judge the checkpoint in float32 also where the audit runs in half precision.
    (4.0, {"dtype": "bfloat16"}, {"audit": "bfloat16", "scan": "bfloat16", "float32": "float32"}),
    (4.0, {"measures": ["socm", "layers"]}, {"audit": "float32"}),
]


@pytest.mark.parametrize(("speedup", "asked", "runs_in"), PRECISIONS)
def test_an_estimate_follows_the_precision_of_each_stage(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    speedup: float,
    asked: dict[str, Any],
    runs_in: dict[Precision, str],
) -> None:
    monkeypatch.setenv("EMBAUDIT_HOME", str(tmp_path))
    monkeypatch.setattr(candidates, "product_seconds", lambda *_: ProductSeconds(speedup, 1.0, 128))
    made_up = {"float32": 1e11, "bfloat16": 4e11}
    asked_for: list[str] = []

    def rate(device: str, dtype: str, widths: tuple[int, int]) -> float:
        asked_for.append(dtype)
        return made_up[dtype]

    monkeypatch.setattr(measure, "operations_per_second", rate)
    plan = planned(device="cpu", **asked)
    readable = read_by(plan)
    expected = HowLong(plan, readable).seconds
    # Nothing is measured that the audit does not compute in.
    assert sorted(asked_for) == sorted(set(runs_in.values()))
    for name, parts in work_of(plan.profile, plan.measures, readable).items():
        taken = sum(
            readable.operations(one) / made_up[runs_in[one.runs_in]]
            + readable.beside_layers(one) / made_up[runs_in.get("float32", runs_in[one.runs_in])]
            + one.core_seconds / measure.processors()
            for one in parts
        )
        assert expected[name] == pytest.approx(taken)


@pytest.mark.parametrize(
    ("settings", "as_scanned"),
    [
        (StickySettings(), True),
        # Too few to tell whether half precision moves a figure, and a precision that somebody chose for the scan alone.
        (StickySettings(max_shortlist=6), False),
        (StickySettings(controls=10), False),
        (StickySettings(scan_dtype="bfloat16"), False),
    ],
)
def test_of_sticky_tokens_search_and_validation_run_as_the_scan(settings: StickySettings, as_scanned: bool) -> None:
    readable = replace(READABLE, rows={"sts": 4_000}, tokens={"sts": 14.0})
    work = list(settings.work(readable))
    scanned = sum(one.texts for one in work if one.runs_in == "scan")
    search = READABLE.searched * settings.draws
    listed = min(2 * 0.02 * READABLE.searched, 2 * (settings.max_shortlist or READABLE.searched))
    validation = (listed + settings.controls) * settings.validation_draws
    assert scanned == pytest.approx(search + validation if as_scanned else search)
    # u and the evidence stay in the audit's own.
    own = sum(one.texts for one in work if one.runs_in == "audit")
    assert own == pytest.approx(sum(one.texts for one in work) - scanned)
    assert own > READABLE.vocabulary


@pytest.mark.parametrize("prompt", ["", "query: "])
@pytest.mark.parametrize(
    "text", ["The river runs to the sea.", "河流入海，老城有一座教堂。", "Río\n", "long word " * 3_000, ""]
)
def test_tokens_are_counted_as_the_checkpoint_reads_them(
    minilm: Checkpoint, tmp_path: Path, text: str, prompt: str
) -> None:
    """Four and a half characters a token, as in English, is three times too many in Chinese."""
    lines = tmp_path / "texts.jsonl"
    lines.write_text("\n".join(json.dumps({"text": f"{number} {text}"}) for number in range(5)))
    (corpus,) = ingest_corpus(name="wikipedia", source=str(lines), staging=str(tmp_path))
    spec = CheckpointSpec(
        reference="packaged:all-MiniLM-L6-v2", checkpoint_id=minilm.checkpoint_id, device="cpu", dtype="float32"
    )
    (found,) = mean_tokens(spec, {"wikipedia": corpus}, prompt).values()
    ids = [minilm.content_ids(f"{number} {text}", 10**9) for number in range(5)]
    expected = np.mean(list(map(len, ids))) + len(minilm.content_ids(prompt)) + 2
    assert found == pytest.approx(expected, rel=0.02)


def test_what_judges_the_checkpoint_runs_in_float32() -> None:
    profile = load_profile("quick")
    work = work_of(profile, ["integrity", "quality"], READABLE)
    assert {one.runs_in for parts in work.values() for one in parts} == {"float32"}
