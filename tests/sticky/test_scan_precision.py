"""The scan's precision: measured once for a machine, remembered, given by a flag; and that it keeps the ranks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from tiny import tiny_bert

from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint
from embaudit.checkpoint.precision import ProductSeconds
from embaudit.corpora.load import load_corpus
from embaudit.measures.run import Run
from embaudit.measures.sticky import StickySettings
from embaudit.measures.sticky.moments import insert_tokens, score
from embaudit.measures.sticky.points import every_against_every
from embaudit.measures.sticky.steps import candidates
from embaudit.measures.sticky.steps.candidates import ScanPrecision, scan_precision
from embaudit.questions.audit import AuditRequest
from embaudit_flows.measure import PrefectTasks
from embaudit_flows.plan import AuditPlan, plan_audit

# Of all-MiniLM-L6-v2.
U = 0.19985


class Timings:
    """What the next measurements find, and how many were made."""

    def __init__(self) -> None:
        self.next: list[float] = []
        self.made: list[tuple[str, str, tuple[int, int]]] = []

    def __call__(self, device: str, half: str, widths: tuple[int, int]) -> ProductSeconds:
        self.made.append((device, half, tuple(widths)))
        return ProductSeconds(float32=self.next.pop(0) * 0.002, half=0.002, rows=128)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBAUDIT_HOME", str(tmp_path / "home"))


@pytest.fixture
def timings(monkeypatch: pytest.MonkeyPatch) -> Timings:
    made_up = Timings()
    monkeypatch.setattr(candidates, "product_seconds", made_up)
    return made_up


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    return tiny_bert(tmp_path_factory.mktemp("precision") / "bert")


def plan(folder: Path, profile: str = "quick", dtype: str = "auto", **sticky: Any) -> AuditPlan:
    """With some settings of the measure."""
    asked = {"profile": profile, "dtype": dtype, "measure_settings": {"sticky": sticky}, "device": "cpu"}
    return plan_audit(AuditRequest.of(checkpoint=str(folder), **asked))


def run(folder: Path, **asked: Any) -> Run:
    return plan(folder, **asked).run({}, engine=PrefectTasks())


@pytest.mark.parametrize(
    ("speedup", "dtype"), [(3.3, "bfloat16"), (1.6, "bfloat16"), (1.4, "float32"), (0.2, "float32")]
)
def test_auto_takes_what_was_measured_on_the_models_own_shapes(
    folder: Path, timings: Timings, speedup: float, dtype: str
) -> None:
    timings.next = [speedup]
    assert scan_precision(run(folder)) == (dtype, pytest.approx(speedup))
    assert timings.made == [("cpu", "bfloat16", (32, 64))]


def test_a_measurement_near_the_limit_is_made_once_and_stays(
    folder: Path, timings: Timings, monkeypatch: pytest.MonkeyPatch
) -> None:
    timings.next = [1.55, 1.45]
    first = scan_precision(run(folder))
    assert first.dtype == "bfloat16"
    # The same audit again, and another of a checkpoint with the same shapes.
    assert scan_precision(run(folder)) == scan_precision(run(tiny_bert(folder.parent / "other", seed=1))) == first
    assert len(timings.made) == 1
    # Another machine on the same staging measures for itself.
    monkeypatch.setattr(candidates, "machine", lambda device: {"processor": "another"})
    assert scan_precision(run(folder)).dtype == "float32"
    assert len(timings.made) == 2


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_precision_that_was_asked_for_is_not_measured(folder: Path, timings: Timings, dtype: str) -> None:
    assert scan_precision(run(folder, scan_dtype=dtype)) == ScanPrecision(dtype, None)
    assert timings.made == []


@pytest.mark.parametrize("how", ["the flag", "a profile of one's own", "paper"])
def test_what_is_held_against_published_figures_is_in_float32(
    folder: Path, timings: Timings, tmp_path: Path, how: str
) -> None:
    own = tmp_path / "own.toml"
    own.write_text('name = "own"\nversion = 1\ndescription = ""\n[sticky]\nreference = true\n')
    asked = {"the flag": {"reference": True}, "paper": {"profile": "paper"}}.get(how, {"profile": str(own)})
    assert scan_precision(run(folder, **asked)) == ScanPrecision("float32", None)
    assert timings.made == []
    # A precision that is asked for is used.
    assert scan_precision(run(folder, **asked, scan_dtype="bfloat16")).dtype == "bfloat16"
    # u is of every entry, and so are the pairs below it.
    assert run(folder, **asked).settings(StickySettings).similarity_entries is None


def test_a_flag_goes_before_the_profile(folder: Path, timings: Timings, tmp_path: Path) -> None:
    profile = tmp_path / "own.toml"
    profile.write_text('name = "own"\nversion = 1\ndescription = ""\n[sticky]\nscan_dtype = "bfloat16"\n')
    assert scan_precision(run(folder, profile=str(profile))).dtype == "bfloat16"
    assert scan_precision(run(folder, profile=str(profile), scan_dtype="float32")).dtype == "float32"
    timings.next = [0.5]
    assert scan_precision(run(folder, profile=str(profile), scan_dtype="auto")) == ("float32", pytest.approx(0.5))


def test_a_flag_is_part_of_the_question(folder: Path) -> None:
    plain, forced = plan(folder), plan(folder, scan_dtype="bfloat16")
    assert plain.audit_id({}) == plan(folder, scan_dtype="auto").audit_id({}) != forced.audit_id({})


def test_an_audit_in_half_precision_is_scanned_in_it(folder: Path, timings: Timings) -> None:
    assert scan_precision(run(folder, dtype="float16")) == ScanPrecision("float16", None)
    assert timings.made == []


@pytest.mark.slow
def test_bfloat16_keeps_the_ranks_of_float32(minilm: Checkpoint) -> None:
    texts = [side for pair in load_corpus("sts").pairs for side in (pair.first, pair.second)]
    sentences = list(dict.fromkeys(texts))[:100]
    points = every_against_every(Encoder(minilm), sentences[:1], sentences[1:], U, 8, 0, groups=2)
    tokens = np.arange(1_996, 30_000, 140)
    half = load_checkpoint("packaged:all-MiniLM-L6-v2", LoadOptions(device=minilm.device, dtype="bfloat16"))
    exact, cheap = (score(points, insert_tokens(Encoder(one), points, tokens, [0])) for one in (minilm, half))
    assert spearmanr(exact.slope, cheap.slope).statistic >= 0.99
    assert spearmanr(exact.pull, cheap.pull).statistic >= 0.99
