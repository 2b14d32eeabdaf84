"""What was requested is what came: base64, fewer dimensions. Numbers of no use are named as what they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from compared_functions import compared, endpoint_of
from role_clients import Client, opened
from some_rows import mostly_slow

from benchmarks.serving.faults import as_lists, faithful
from benchmarks.serving.server import Refusal, Served
from embaudit.checkpoint import Checkpoint
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.embedders.function import EmbeddingFunction
from embaudit.measures.quality.material import Material, sample_material
from embaudit.questions.check.served import check_served
from embaudit.questions.parity.parity import compare_with
from embaudit.questions.passport.make import make_passport
from embaudit.questions.passport.verify import verify_with


def unit(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def test_lists_in_place_of_base64_are_said(served_checkpoint: Checkpoint) -> None:
    served = Served(faithful(served_checkpoint), after=as_lists)
    with endpoint_of(served) as endpoint:
        report = compare_with(CheckpointFunction(served_checkpoint), endpoint, Material())
        passed = verify_with(make_passport(CheckpointFunction(served_checkpoint)), endpoint)
    for one in (report, passed):
        assert one.line == "The same function."
        (said,) = (finding for finding in one.findings if finding.name == "asked_base64")
        assert said.level == "not measured"
        assert said.sentence == ("Asked for base64, it gives lists of numbers: what it would give so was not compared.")


def test_base64_itself_is_compared(served_checkpoint: Checkpoint) -> None:
    report = compared(served_checkpoint, Served(faithful(served_checkpoint)))
    assert next(finding.level for finding in report.findings if finding.name == "asked_base64") == "ok"


# (what a server that is asked for 16 of 32 dimensions gives, the verdict, what is said)
CUT: dict[str, tuple[Callable[[np.ndarray], np.ndarray], str, str]] = {
    "cut and normalised": (lambda rows: unit(rows[:, :16]), "the same function", "The same function."),
    "cut alone": (
        lambda rows: rows[:, :16],
        "another function",
        "cuts its vectors and does not normalise them again",
    ),
    "ignored": (lambda rows: rows, "another function", "Asked for 16 dimensions, "),
    "the last ones": (lambda rows: unit(rows[:, 16:]), "another function", "Other vectors for texts of every kind"),
}


@pytest.mark.parametrize("name", mostly_slow(CUT, ("cut alone", "ignored")))
def test_fewer_dimensions_are_asked_of_both(served_checkpoint: Checkpoint, name: str) -> None:
    cut, verdict, said = CUT[name]
    known = CheckpointFunction(served_checkpoint)
    encode = faithful(served_checkpoint)
    with endpoint_of(Served(lambda texts: cut(encode(texts))), dimensions=16) as endpoint:
        # Nothing explains the last ones.
        explains = name != "the last ones"
        report = compare_with(known, endpoint, sample_material().part(0.02), with_explanation=explains)
        passed = verify_with(make_passport(known), endpoint)
    assert (report.verdict, passed.verdict) == (verdict, verdict)
    assert said.lower() in report.line.lower()
    assert said.lower() in passed.line.lower()
    assert "keeps the first" not in report.line


def test_a_check_says_that_dimensions_are_ignored(served_checkpoint: Checkpoint) -> None:
    with endpoint_of(Served(faithful(served_checkpoint)), dimensions=16) as endpoint:
        assert "Asked for 16 dimensions, " in check_served(endpoint, sample_material().part(0.02)).line


# (what a client makes of a vector, what is said of it, what is not advised)
ROWS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], str, bool]] = {
    "whole numbers of another range": (lambda row: np.round(row), "a vector of zeros", False),
    "bytes that are taken for nothing": (lambda row: 0 * row, "a vector of zeros", False),
    "overflow": (lambda row: row * np.inf, "get NaN", True),
}


class TestZeros:
    """They are no overflow of half precision."""

    @pytest.mark.parametrize("name", ROWS)
    def test_in_a_comparison(self, served_checkpoint: Checkpoint, name: str) -> None:
        rows, said, is_overflow = ROWS[name]
        client = Client(served_checkpoint, lambda text: f"find: {text}", rows)
        report = compared(served_checkpoint, client, with_explanation=False)
        found = next(finding for finding in report.findings if finding.name == "not_finite")
        assert said in found.sentence
        assert ("half precision" in found.advice) == is_overflow

    def test_in_a_check(self, served_checkpoint: Checkpoint) -> None:
        nothing: EmbeddingFunction = opened(lambda texts: np.zeros((len(texts), 8)))
        report = check_served(nothing, sample_material().part(0.02))
        assert "its vector is zero" in report.line
        assert not any("distinct vectors" in finding.sentence for finding in report.findings)
        assert not any("server's log" in finding.advice for finding in report.findings)


class Empty(Client):
    """Gives something else of texts with nothing in them."""

    instead: object = None

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        rows = super().embed_documents([text or "x" for text in texts])
        return [row if text.strip() else self.instead for text, row in zip(texts, rows, strict=True)]  # type: ignore[misc]


@pytest.mark.parametrize("instead", [None, [0.0] * 32, [float("nan")] * 32], ids=["None", "zeros", "NaN"])
def test_what_is_given_for_nothing_is_to_be_looked_at(served_checkpoint: Checkpoint, instead: object) -> None:
    client = Empty(served_checkpoint, texts=lambda text: f"find: {text}")
    client.instead = instead
    report = compared(served_checkpoint, client)
    assert report.verdict == "the same function", report.line
    assert {finding.name for finding in report.findings if finding.level == "look"} == {"no_vector"}


def leaving_out(checkpoint: Checkpoint, *, moves_up: bool) -> Served:
    """Leaves texts without a word out of a batch; alone, it refuses them."""
    encode = faithful(checkpoint)

    def answer(texts: list[str]) -> np.ndarray:
        some = [text for text in texts if text.strip()]
        if not some:
            raise Refusal(400, "nothing in it")
        rows = encode(some)
        if moves_up:
            return np.concatenate([rows, rows[: len(texts) - len(some)]])
        full = np.full((len(texts), rows.shape[1]), np.nan)
        full[[place for place, text in enumerate(texts) if text.strip()]] = rows
        return full

    return Served(answer)


@pytest.mark.parametrize("moves_up", [True, False])
def test_an_empty_text_that_shifts_the_others(served_checkpoint: Checkpoint, moves_up: bool) -> None:
    report = compared(served_checkpoint, leaving_out(served_checkpoint, moves_up=moves_up))
    problems = [finding.sentence for finding in report.findings if finding.level == "problem"]
    assert bool(problems) == moves_up
    if moves_up:
        assert "It leaves out a text with nothing in it, and gives those after it each other's vectors" in problems[0]
