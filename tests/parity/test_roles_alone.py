"""What goes wrong with queries alone: it is seen and named once, whichever of two does it, and reports are drawn.

A client may shorten, round, refuse or mix up queries and leave documents as they are; one may take all texts alike.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from compared_functions import endpoint_of
from role_clients import Client, fail, opened
from some_rows import mostly_slow

from benchmarks.serving.faults import faithful
from benchmarks.serving.server import Served
from embaudit.checkpoint import Checkpoint
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.embedders.function import EmbeddingFunction, roles_to_compare
from embaudit.measures.quality.material import Material, sample_material
from embaudit.pages.html import render
from embaudit.questions.parity.parity import ParityReport, compare_with
from embaudit.questions.passport.make import make_passport
from embaudit.questions.passport.verify import verify_with


class Fewer(Client):
    """All of its vectors are cut."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [row[:8] for row in super().embed_documents(texts)]

    def embed_query(self, text: str) -> list[float]:
        return super().embed_query(text)[:8]


def compared(first: EmbeddingFunction, client: object, *, explain: bool = False) -> ParityReport:
    report = compare_with(first, opened(client), Material(), with_explanation=explain)
    drawn(report)
    return report


def drawn(report: Any) -> None:
    """Every state of a report can be shown."""
    assert render(report.page())
    assert json.loads(json.dumps(report.as_json(), allow_nan=False, default=float))
    assert "nan" not in report.line
    assert ", which ." not in report.line


def to_bfloat16(row: np.ndarray) -> np.ndarray:
    bits = row.astype(np.float32).view(np.uint32) & 0xFFFF0000
    return np.asarray(bits.astype(np.uint32).view(np.float32))


# (what is done to queries, the finding that says so, a part of its sentence)
OF_QUERIES: dict[str, tuple[dict[str, Any], str, str]] = {
    "fewer numbers": ({"rows": lambda row: row[:8]}, "no_vector", "a vector of 8 numbers, where others have 32"),
    "zeros": ({"rows": lambda row: 0 * row}, "not_finite", "get a vector of zeros"),
    "NaN": ({"rows": lambda row: np.nan * row}, "not_finite", "get NaN"),
    "refused": ({"texts": fail}, "no_vector", "ValueError: no queries here"),
    "another length": ({"rows": lambda row: 3 * row}, "another_function", "another length"),
}


@pytest.mark.parametrize("fault", mostly_slow(OF_QUERIES, ("NaN", "refused", "another length")))
def test_queries_without_a_right_vector_are_named_once(spaced_checkpoint: Checkpoint, fault: str) -> None:
    done, name, said = OF_QUERIES[fault]
    report = compared(CheckpointFunction(spaced_checkpoint), Client(spaced_checkpoint, **done))
    assert report.verdict == "another function"
    (problem,) = (finding for finding in report.findings if finding.level == "problem")
    assert problem.name == name
    assert said in problem.sentence


@pytest.mark.parametrize("fault", mostly_slow(OF_QUERIES, 2))
def test_a_passport_knows_them_too(spaced_checkpoint: Checkpoint, fault: str) -> None:
    done, name, said = OF_QUERIES[fault]
    report = verify_with(make_passport(opened(Client(spaced_checkpoint))), opened(Client(spaced_checkpoint, **done)))
    drawn(report)
    assert report.differing == ("as queries",)
    assert said in next(finding for finding in report.findings if finding.name == name).sentence


def test_the_first_of_two_may_be_the_one_without(spaced_checkpoint: Checkpoint) -> None:
    report = compared(opened(Client(spaced_checkpoint, texts=fail)), Client(spaced_checkpoint))
    assert report.verdict == "another function"
    (problem,) = (finding for finding in report.findings if finding.level == "problem")
    assert problem.name == "no_vector_of_first"
    assert problem.sentence.startswith("By Client, ")
    assert "“as queries” get no vector" in problem.sentence


def test_data_sets_are_left_out_where_queries_have_no_vector(spaced_checkpoint: Checkpoint) -> None:
    material = sample_material().part(0.05)
    report = compare_with(
        CheckpointFunction(spaced_checkpoint),
        opened(Client(spaced_checkpoint, texts=fail)),
        material,
        with_explanation=False,
    )
    drawn(report)
    assert [corpus.name.split()[0] for corpus in report.corpora] == ["pairs"]


def test_queries_in_half_precision_are_the_same_function(spaced_checkpoint: Checkpoint) -> None:
    report = compared(CheckpointFunction(spaced_checkpoint), Client(spaced_checkpoint, rows=to_bfloat16), explain=True)
    assert report.line == "The same function in lower precision; look at 1 thing."
    (look,) = (finding for finding in report.findings if finding.level == "look")
    assert look.sentence.startswith("What is asked for as queries differs by no more than half precision rounds")
    passport = make_passport(opened(Client(spaced_checkpoint)))
    assert not verify_with(passport, opened(Client(spaced_checkpoint, rows=to_bfloat16))).differing


def test_queries_that_differ_from_time_to_time_are_not_explained(spaced_checkpoint: Checkpoint) -> None:
    noise = np.random.default_rng(0)
    client = Client(spaced_checkpoint, rows=lambda row: row + 0.3 * noise.normal(size=len(row)))
    report = compared(CheckpointFunction(spaced_checkpoint), client, explain=True)
    assert report.line.startswith("Another function: a text asked as a query a second time")
    assert report.in_roles == {}


@pytest.mark.slow
def test_a_prompt_is_named_beside_fewer_dimensions(spaced_checkpoint: Checkpoint) -> None:
    known = CheckpointFunction(spaced_checkpoint)
    report = compared(known, Fewer(spaced_checkpoint, texts=lambda text: f"query: {text}"), explain=True)
    assert "It keeps the first 8 of 32 dimensions" in report.line
    assert "Asked for queries, it puts 'query: ' before texts; it keeps the first 8" in report.line
    assert "Asked for" not in compared(known, Fewer(spaced_checkpoint), explain=True).line


@pytest.mark.slow
def test_a_prompt_that_is_left_out_is_named_beside_what_is_done_to_all(served_checkpoint: Checkpoint) -> None:
    client = Client(served_checkpoint, texts=str.upper, documents=str.upper)
    line = compared(CheckpointFunction(served_checkpoint), client, explain=True).line
    assert "It upper-cases texts" in line
    assert "Asked for queries, it leaves out the prompt 'find: '; it upper-cases texts" in line


class TestOneThatTakesAllTextsAlike:
    """What only the other one does to queries is said; whether callers do it, nobody knows."""

    @pytest.mark.parametrize("is_first", [True, False])
    def test_beside_a_client(self, spaced_checkpoint: Checkpoint, is_first: bool) -> None:
        client = Client(spaced_checkpoint, texts=lambda text: text[:20])
        plain = client.embed_documents
        first, second = (client, plain) if is_first else (plain, client)
        report = compared(opened(first), second)
        assert report.line == "The same function; look at 1 thing."
        (look,) = (finding for finding in report.findings if finding.level == "look")
        assert look.sentence.startswith("Asked for queries, the function Client gives other vectors than for texts")

    def test_beside_a_client_that_does_nothing(self, spaced_checkpoint: Checkpoint) -> None:
        client = Client(spaced_checkpoint)
        assert {one.level for one in compared(opened(client), client.embed_documents).findings} == {"ok"}

    def test_beside_a_checkpoint_with_a_prompt(self, served_checkpoint: Checkpoint) -> None:
        report = compared(CheckpointFunction(served_checkpoint), Client(served_checkpoint).embed_documents)
        assert report.line == "The same function."
        (untold,) = (finding for finding in report.findings if finding.level == "not measured")
        assert "the checkpoint puts 'find: ' before queries" in untold.sentence
        assert "--query-prompt 'find: '" in untold.advice

    def test_a_checkpoints_passport(self, spaced_checkpoint: Checkpoint) -> None:
        """The checkpoint puts nothing before anything: queries are held against its texts."""
        passport = make_passport(CheckpointFunction(spaced_checkpoint))
        report = verify_with(passport, opened(Client(spaced_checkpoint, texts=lambda text: text[:9])))
        assert report.differing == ("as queries",)
        assert verify_with(passport, opened(Client(spaced_checkpoint))).line == "The same function."

    def test_a_functions_passport(self, spaced_checkpoint: Checkpoint) -> None:
        client = Client(spaced_checkpoint, texts=lambda text: text[:9])
        report = verify_with(make_passport(opened(client.embed_documents)), opened(client))
        drawn(report)
        assert report.line == "The same function; look at 1 thing."
        assert report.findings[-1].name == "roles"


class TestWhatIsAsked:
    """No more than tells the two apart."""

    def test_what_both_ask_for_alike_is_asked_for_once(self, spaced_checkpoint: Checkpoint) -> None:
        known, client = CheckpointFunction(spaced_checkpoint), opened(Client(spaced_checkpoint))
        assert [known.alike(role) for role in ("query", "document")] == ["text", "text"]
        assert [client.alike(role) for role in ("query", "document")] == ["query", "text"]
        assert roles_to_compare(known, client) == ("query",)
        report = compare_with(known, client, Material())
        assert "as queries" in {kind.kind for kind in report.kinds}
        assert "as documents" not in {kind.kind for kind in report.kinds}

    def test_a_field_of_every_request_is_no_role(self, served_checkpoint: Checkpoint) -> None:
        """The checkpoint's prompt is its callers', as without the field."""
        fields: dict[Any, dict[str, Any]] = {role: {"truncate": "END"} for role in ("text", "query", "document")}
        with endpoint_of(Served(faithful(served_checkpoint)), fields=fields) as endpoint:
            assert not endpoint.takes_roles
            report = compare_with(CheckpointFunction(served_checkpoint), endpoint, Material())
        assert report.verdict == "the same function"

    @pytest.mark.slow
    def test_roles_do_not_double_the_requests(self, served_checkpoint: Checkpoint) -> None:
        counts = []
        known = CheckpointFunction(served_checkpoint)
        for fields in ({}, {"query": {"input_type": "query"}, "document": {"input_type": "passage"}}):
            with endpoint_of(Served(faithful(served_checkpoint)), fields=fields) as endpoint:
                counts.append(compare_with(known, endpoint, Material(), with_explanation=False).requests)
        assert counts[0] < counts[1] < 2 * counts[0]
