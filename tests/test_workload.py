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
from embaudit.measures.listed import MEASURES, load_profile
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


# A small checkpoint and corpora of which no two sizes are equal, and the estimate of each measure: texts and tokens,
# and a core's seconds where there are any.
SIZES = Readable(
    layers=4,
    heads=12,
    hidden_size=10,
    vocabulary=1_000,
    searched=900,
    max_length=200,
    rows={"wikipedia": 700, "msmarco": 80, "longdocs": 60, "retrieval": 2_000, "sts": 300, "golden": 50}
    | {"msmarco-positives": 90},
    tokens={"wikipedia": 50.0, "msmarco": 45.0, "longdocs": 600.0, "retrieval": 100.0, "sts": 20.0, "golden": 70.0}
    | {"msmarco-positives": 35.0},
)
# Of 150 documents, and of the sample's.
COLLECTION, SAMPLE = Work(150, 100, is_shared=True), Work(270, 110, is_shared=True)
SAMPLE_OF = {"corpora": ()}
ESTIMATES: list[tuple[str, dict[str, Any], list[Work]]] = [
    ("integrity", {}, [Work(70, 30, 4.0, runs_in="float32")]),
    ("quality", {"corpora": ("sts",)}, [Work(2_000, 24, 6.0, runs_in="float32")]),
    (
        "quality",
        {"wordings": True},
        [
            Work(2_000, 24, 6.0, runs_in="float32"),
            # Twelve tenths of the sample's queries with nine wordings, and the golden queries' documents.
            Work(9 * 120, 21, runs_in="float32"),
            Work(50, 70, runs_in="float32"),
        ],
    ),
    (
        "sticky",
        {"sentences": 250, "copies": 5, "draws": 6, "max_shortlist": 7, "controls": 11, "validation_draws": 13}
        | {"dose_tokens": 2, "doses": (1, 2, 4), "dose_draws": 17, "shift_tokens": 3, "shift_pairs": 400}
        | {"attention_tokens": 4, "attention_sentences": 19, "reference": True, "reference_pairs": 2},
        [
            # Of each entry, a fifth twice; and a look at no more tokens than there are.
            Work(1_200 + 1_000, 4),
            Work(250, 20),
            Work(900 * 6, 25, runs_in="scan"),
            Work((2 * 7 + 11) * 13, 25),
            Work(2 * (2 * 3 * 17 + 3 * 300 + 4 * 19), 25),
            Work(8 * 3 * 900 * (2 + 0.02 * 250), 25),
        ],
    ),
    (
        "sticky",
        {"similarity_entries": 100, "scan_encodes": 333, "shortlist_share": 0.1, "controls": 24, "dose_tokens": 0}
        | {"shift_tokens": 0, "attention_tokens": 0},
        [
            Work(120 + 1_000, 4),
            Work(300, 20),
            Work(333, 28, runs_in="scan"),
            Work((180 + 24) * 60, 28, runs_in="scan"),
            Work(0, 28),
        ],
    ),
    (
        "socm",
        {"corpora": ("wikipedia", "msmarco-positives"), "texts": 400}
        | {"cut_tokens": (8, 64, 256), "cut_texts": 30, "pooling_texts": 20},
        [
            Work(400, 50, 40e-9 * 400 * 400 / 2 * 50**2),
            Work(30, 8, 40e-9 * 30 * 30 / 2 * 8**2),
            Work(30, 50, 40e-9 * 30 * 30 / 2 * 50**2),
            Work(20, 50),
            # Both texts of each listed pair.
            Work(2 * 90, 35, 40e-9 * 90 * 35**2),
        ],
    ),
    (
        "layers",
        {"corpora": ("wikipedia",), "texts": 300},
        [Work(300, 50, 1.35e-7 * 300 * 12 * 50**2 + 1.8e-9 * 4 * 10**3)],
    ),
    ("geometry", {"texts": 100}, [Work(100, 50), Work(80, 45)]),
    ("surface", {"documents": 150, "queries": 40}, [COLLECTION, Work(14 * 40, 18)]),
    ("surface", SAMPLE_OF, [SAMPLE, Work(14 * 90, 18)]),
    # Sentences, and searches of a query and two documents.
    ("meaning", {}, [Work(414, 20), Work(3 * 112, 14)]),
    ("position", {"documents": 150, "moved": 7, "tokens": 90}, [COLLECTION, Work(7 * 5, 90), Work(7, 48)]),
    ("attractors", {"documents": 150}, [COLLECTION, Work(54, 20)]),
    ("attractors", SAMPLE_OF, [SAMPLE, Work(54, 20)]),
    ("compression", {"documents": 150}, [COLLECTION, Work(0, 0, 1.0)]),
    (
        "chunks",
        {"documents": 150, "sizes": (20, 40, 150, 200), "searched": 30, "passages": 3},
        # In 5, in 2.5, in one; of the limit's length it is no piece. Three make one document.
        [COLLECTION, Work(30 * 5, 20), Work(30 * 2.5, 40), Work(30, 100), Work(10, 200)],
    ),
    ("chunks", {**SAMPLE_OF, "sizes": (55,), "passages": 2, "searched": 4}, [SAMPLE, Work(8, 55), Work(2, 200)]),
    ("languages", {"languages": ("de", "fr")}, [Work(3 * 40, 21)]),
    (
        "length",
        {"corpora": ("longdocs", "retrieval"), "longest": 500, "texts": 50, "control_texts": 40, "window": 10}
        | {"sigma_texts": 20, "sigma_lengths": (16, 128), "ranked_documents": 80},
        [
            Work(50, 500),
            # Eight lengths, half as long, of three texts in four; and these in windows with two special tokens each.
            Work(40 * 8 / 2 * 3 / 4, 500),
            Work(40 * 3 / 4 * 500 / 10, 12),
            Work(20, 16, 2e-3 * 20 * 12 * 16 / 512),
            Work(20, 128, 2e-3 * 20 * 12 * 128 / 512),
            Work(50, 100),
            Work(120, 100),
            Work(30 * 100 / 10, 12),
            Work(20, 16, 2e-3 * 20 * 12 * 16 / 512),
            Work(20, 100, 2e-3 * 20 * 12 * 128 / 512),
            Work(2 * 80, 100),
        ],
    ),
    (
        "tempscale",
        {"grid": (1.0, 0.9, 0.5), "texts": 30, "documents": "all", "pairs": 100, "by": ("layer", "head")},
        # Three temperatures and averaged chunks; two neighbours of each of 4 layers, or 3 heads, for each of its tasks.
        [
            *(Work(4 * 30, 200), Work(4 * 2_000, 100), Work(4 * 200, 20)),
            *(Work(2 * 4 * 3 * 30, 200), Work(2 * 4 * 2_000, 100), Work(2 * 4 * 200, 20)),
            *(Work(2 * 3 * 3 * 30, 200), Work(2 * 3 * 2_000, 100), Work(2 * 3 * 200, 20)),
        ],
    ),
    (
        "occurrence",
        {"anchors": 65, "removal_texts": 9},
        # With and without each of ten tokens.
        [Work(65, 50), Work(2 * 10 * 9, 50), Work(65, 45), Work(2 * 10 * 9, 45)],
    ),
    (
        "placement",
        {"tokens_placed": 2, "ordinary": 3, "draws": 4, "budget": 5, "tries": 6, "guided": 7},
        # Six fixed, the random ones, and for each copy every gap, a gradient and what it proposes.
        [Work((2 + 3) * 4 * (6 + 6 + 5 * (20 + 6 + 7)), 20 + 5)],
    ),
    # Clean, and with two tokens of three arms, or of two.
    ("impact", {"tokens_per_arm": 2}, [Work(7 * 60, 200), Work(7 * 1_200, 100), Work(7 * 300, 20)]),
    ("impact", {"tokens_per_arm": 2, "tokens": ("a",), "corpora": ("sts",)}, [Work(5 * 300, 20)]),
    (
        "mitigation",
        {"corpora": ("retrieval",), "documents": 10, "remedies": ("strip", "mean", "centring"), "tokens_per_arm": 3}
        | {"vocabulary": 2_000, "loss_tokens": 4, "draws": 5},
        # Clean, and three tokens untreated and under each of two remedies before encoding.
        [Work((1 + 3 * 3) * 10, 100), Work((2 * 1_000 + 3 * 4) * 5, 20)],
    ),
]


@pytest.mark.parametrize(("name", "settings", "expected"), ESTIMATES)
def test_each_measure_says_what_it_encodes(name: str, settings: dict[str, Any], expected: list[Work]) -> None:
    found = list(MEASURES[name].settings.model_validate(settings).work(SIZES))
    for one, other in zip(found, expected, strict=True):
        assert (one.is_shared, one.runs_in) == (other.is_shared, other.runs_in)
        assert one.texts == pytest.approx(other.texts)
        assert one.tokens == pytest.approx(other.tokens)
        assert one.core_seconds == pytest.approx(other.core_seconds)


def test_every_measure_is_estimated_and_nothing_as_longer_than_it_is_read() -> None:
    assert {name for name, _, _ in ESTIMATES} == {*MEASURES}
    # These read up to all positions, or insert into what is read.
    for name in MEASURES.keys() - {"length", "mitigation", "placement", "sticky"}:
        for corpora in ({}, SAMPLE_OF) if name in ("attractors", "chunks", "position", "surface") else ({},):
            work = MEASURES[name].settings.model_validate(corpora).work(replace(SIZES, max_length=8))
            assert max(one.tokens for one in work) in (8, 0), name


def test_without_sentence_pairs_no_losses_are_estimated() -> None:
    readable = replace(SIZES, rows={"retrieval": 9}, tokens={"retrieval": 9.0})
    settings = MEASURES["mitigation"].settings.model_validate({"corpora": ("retrieval",)})
    assert len(list(settings.work(readable))) == 1


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
