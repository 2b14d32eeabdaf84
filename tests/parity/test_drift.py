"""A server that changes while it is asked: that is one finding, and nothing else is blamed for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compared_functions import compared, endpoint_of
from some_rows import mostly_slow
from tiny import tiny_bert

from benchmarks.serving.faults import faithful, padded
from benchmarks.serving.server import Served
from embaudit.checkpoint import Checkpoint, LoadOptions, load_checkpoint
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.measures.quality.material import sample_material
from embaudit.questions.check.served import check_served
from embaudit.questions.passport.make import make_passport
from embaudit.questions.passport.verify import verify_with

# Whether the request of this number, counted from 1, goes to the other model.
Fallback = Callable[[int], bool]


@pytest.fixture(scope="module")
def another(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """Other weights of the same shape."""
    folder: Path = tiny_bert(tmp_path_factory.mktemp("drift") / "other", seed=1)
    return load_checkpoint(str(folder), LoadOptions(device="cpu"))


def gateway(first: Checkpoint, second: Checkpoint, falls_back: Fallback) -> Served:
    served = Served(lambda texts: np.zeros((len(texts), 1)))
    models = [faithful(one) for one in (first, second)]

    def encode(texts: list[str]) -> np.ndarray:
        # The request is on the list already.
        return models[falls_back(len(served.requests))](texts)

    served.encode = encode
    return served


DRIFTS: dict[str, tuple[Fallback, str]] = {
    "from request 81 on": (lambda number: number > 80, "from request 81 on"),
    "from request 20 on": (lambda number: number >= 20, "from request 20 on"),
    "after what was asked alone": (lambda number: number > 100, "between requests "),
    "at every twelfth": (lambda number: number % 12 == 0, "at every 12th request"),
    "at every second": (lambda number: number % 2 == 0, "at every second request"),
    "at every fifth": (lambda number: number % 5 == 3, "at every 5th request"),
    "now and then": (lambda number: number * 7919 % 31 < 4, "at about one request in "),
}


@pytest.mark.parametrize("name", mostly_slow(DRIFTS, ("from request 81 on",)))
def test_a_change_is_one_finding_that_says_when(served_checkpoint: Checkpoint, another: Checkpoint, name: str) -> None:
    falls_back, said = DRIFTS[name]
    served = gateway(served_checkpoint, another, falls_back)
    report = compared(served_checkpoint, served, sample_material().part(0.1))
    problems = [finding for finding in report.findings if finding.level == "problem"]
    assert [said in one.sentence for one in problems] == [True], report.line
    assert report.line.startswith("Another function: the same texts get other vectors ")
    assert "one model" in problems[0].advice
    # What queries get is its callers' in any case.
    assert [one.name for one in report.findings if one.level == "not measured"] == ["unsteady", "roles"]
    assert report.explanation is None
    assert report.corpora == ()


def test_a_steady_one_is_asked_again_and_nothing_is_found(served_checkpoint: Checkpoint) -> None:
    report = compared(served_checkpoint, Served(faithful(served_checkpoint)), sample_material().part(0.05))
    assert report.line == "The same function."
    assert {finding.level for finding in report.findings if finding.name != "roles"} == {"ok"}


def test_another_model_all_the_time_is_no_drift(served_checkpoint: Checkpoint, another: Checkpoint) -> None:
    report = compared(served_checkpoint, Served(faithful(another)), with_explanation=False)
    assert "other vectors for texts of every kind" in report.line


def test_what_is_wrong_in_batches_alone_is_blamed_on_batches(served_checkpoint: Checkpoint) -> None:
    longer = replace(served_checkpoint, limits=dict.fromkeys(served_checkpoint.limits, 128))
    report = compared(longer, Served(padded(False)(longer)), with_explanation=False)
    problems = [finding for finding in report.findings if finding.level == "problem"]
    assert any("in a batch of mixed length" in one.sentence for one in problems)
    assert "asked_texts" not in [finding.name for finding in problems]


@pytest.mark.parametrize("name", mostly_slow(DRIFTS, ("from request 20 on",)))
def test_a_check_and_a_passport_say_the_same(served_checkpoint: Checkpoint, another: Checkpoint, name: str) -> None:
    passport = make_passport(CheckpointFunction(served_checkpoint))
    for run in (
        lambda endpoint: check_served(endpoint, sample_material().part(0.1)),
        lambda endpoint: verify_with(passport, endpoint),
    ):
        falls_back, _ = DRIFTS[name]
        with endpoint_of(gateway(served_checkpoint, another, falls_back)) as endpoint:
            report = run(endpoint)
        problems = [finding for finding in report.findings if finding.level == "problem"]
        if not problems:
            # The last request came before.
            assert endpoint.requests < 101
            continue
        assert len(problems) == 1, [one.sentence for one in problems]
        assert "he same texts get other vectors " in report.line
        assert not {finding.name for finding in report.findings} & {"tail", "asked_length", "words"}


def test_a_check_and_a_passport_of_a_steady_one_say_nothing(served_checkpoint: Checkpoint) -> None:
    passport = make_passport(CheckpointFunction(served_checkpoint))
    with endpoint_of(Served(faithful(served_checkpoint))) as endpoint:
        assert verify_with(passport, endpoint).line == "The same function."
        assert "unsteady" not in [one.name for one in check_served(endpoint, sample_material().part(0.1)).findings]
