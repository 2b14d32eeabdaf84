"""What is done to queries alone, or to documents: found, explained, and recognised by a passport."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable

import numpy as np
import pytest
from compared_functions import compared
from role_clients import Client, opened
from some_rows import mostly_slow

from embaudit.checkpoint import Checkpoint
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.pages.html import render
from embaudit.questions.parity.page import parity_page
from embaudit.questions.passport.make import make_passport
from embaudit.questions.passport.verify import verify_with

Change = Callable[[str], str]


def without_accents(text: str) -> str:
    return "".join(one for one in unicodedata.normalize("NFD", text) if unicodedata.category(one) != "Mn")


# (what is done to queries, what is said of it)
TO_QUERIES: dict[str, tuple[Change, str]] = {
    "prompt": (lambda text: f"query: {text}", "puts 'query: ' before texts"),
    "upper case": (str.upper, "upper-cases texts"),
    "newlines": (lambda text: text.replace("\n", " "), "replaces newlines by spaces"),
    "ends": (str.strip, "strips"),
    "accents": (without_accents, "strips accents"),
    "cut": (lambda text: text[:120], "reads 120 characters"),
    "quoted": (json.dumps, "JSON"),
}


@pytest.mark.parametrize("fault", mostly_slow(TO_QUERIES, ("prompt",)))
def test_what_is_done_to_queries_alone_is_found_and_named(spaced_checkpoint: Checkpoint, fault: str) -> None:
    change, said = TO_QUERIES[fault]
    report = compared(spaced_checkpoint, Client(spaced_checkpoint, texts=change))
    assert report.verdict == "another function"
    assert "1 of " in report.line
    assert report.explanation is None, "texts that are asked for as nothing in particular have the same vectors"
    assert "no way to use the checkpoint" not in report.line
    assert f"Asked for queries, it {report.in_roles['as queries'].differs[0]}" in report.line
    assert said in report.line
    assert list(report.in_roles) == ["as queries"]
    assert report.in_roles["as queries"].is_complete
    assert report.as_json()["in_roles"]["as queries"]["is_complete"]
    assert report.differs[0].startswith("queries: ")


def test_one_cause_for_all_texts_is_said_once(spaced_checkpoint: Checkpoint) -> None:
    report = compared(spaced_checkpoint, Client(spaced_checkpoint, str.upper, documents=str.upper))
    assert report.line.count("upper-cases") == 1
    assert "Asked for" not in report.line
    assert {report.left_on(kind.kind) <= 1e-4 for kind in report.kinds} == {True}


@pytest.mark.slow
def test_two_causes_are_both_said_and_the_page_has_what_each_leaves(spaced_checkpoint: Checkpoint) -> None:
    client = Client(spaced_checkpoint, lambda text: f"query: {text}", documents=lambda text: f"passage: {text}")
    report = compared(spaced_checkpoint, client)
    assert "It puts 'passage: ' before texts" in report.line
    assert "Asked for queries, it puts 'query: ' before texts" in report.line
    (section,) = parity_page(report).sections
    (table,) = section.parts
    assert "left if explained so" in [column.title for column in table.columns]  # type: ignore[union-attr]
    assert "as queries" in render(parity_page(report))


@pytest.mark.slow
def test_what_nothing_explains_is_said_of_queries_alone(spaced_checkpoint: Checkpoint) -> None:
    report = compared(spaced_checkpoint, Client(spaced_checkpoint, lambda text: " ".join(text.split()[::-1])))
    assert "Asked for queries, " in report.line
    assert report.differs == () or not report.in_roles["as queries"].is_complete


@pytest.mark.parametrize("checkpoint", ["spaced_checkpoint", "served_checkpoint"])
def test_nothing_is_found_where_nothing_is_done(checkpoint: str, request: pytest.FixtureRequest) -> None:
    loaded: Checkpoint = request.getfixturevalue(checkpoint)
    prompted = Client(loaded, texts=lambda text: loaded.reading("query").prompt.text + text)
    report = compared(loaded, prompted)
    assert report.line == "The same function."


@pytest.mark.slow
def test_a_declared_prompt_that_queries_lack_is_named(served_checkpoint: Checkpoint) -> None:
    """The checkpoint declares one for queries; the client puts none before them."""
    report = compared(served_checkpoint, Client(served_checkpoint))
    assert "Asked for queries, it leaves out the prompt 'find: '" in report.line


def test_what_is_refused_anyway_is_not_refused_twice(spaced_checkpoint: Checkpoint) -> None:
    class Refusing(Client):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            if any(len(text) > 700 for text in texts):
                raise ValueError("too long")
            return super().embed_documents(texts)

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

    names = [finding.name for finding in compared(spaced_checkpoint, Refusing(spaced_checkpoint)).findings]
    assert names.count("no_vector") == len(
        {"lengths", "at the limit", "beyond the limit"} & _too_long(spaced_checkpoint)
    )


def _too_long(checkpoint: Checkpoint) -> set[str]:
    from embaudit.questions.parity.compare import texts_by_kind

    return {kind for kind, texts in texts_by_kind(checkpoint).items() if any(len(text) > 700 for text in texts)}


class TestPassport:
    """A passport of what tells roles apart knows both."""

    @pytest.mark.parametrize(
        "change", mostly_slow([lambda text: f"query: {text}", str.upper], 1), ids=["prompt", "upper case"]
    )
    def test_another_step_of_queries_is_noticed(self, spaced_checkpoint: Checkpoint, change: Change) -> None:
        passport = make_passport(opened(Client(spaced_checkpoint)))
        report = verify_with(passport, opened(Client(spaced_checkpoint, texts=change)))
        assert report.differing == ("as queries",)
        assert "Only what is asked for as queries differs" in report.line
        assert verify_with(passport, opened(Client(spaced_checkpoint))).line == "The same function."

    def test_of_a_checkpoint_with_prompts_it_knows_them(self, served_checkpoint: Checkpoint) -> None:
        passport = make_passport(CheckpointFunction(served_checkpoint))
        roles = {"as queries", "as documents"}
        assert roles < passport.kinds.keys()
        assert all(np.isfinite(one.numbers).all() for kind in roles for one in passport.kinds[kind])
        prompted = Client(served_checkpoint, texts=lambda text: f"find: {text}")
        assert verify_with(passport, opened(prompted)).verdict == "the same function"
        assert verify_with(passport, opened(Client(served_checkpoint))).differing == ("as queries",)

    def test_what_is_asked_for_texts_alone_is_not_held_against_them(self, served_checkpoint: Checkpoint) -> None:
        passport = make_passport(CheckpointFunction(served_checkpoint))
        client = Client(served_checkpoint)
        report = verify_with(passport, opened(client.embed_documents))
        assert report.verdict == "the same function"
        (untold,) = (finding for finding in report.findings if finding.level == "not measured")
        assert "asked for texts alone" in untold.sentence

    def test_without_roles_none_are_asked_for(self, spaced_checkpoint: Checkpoint) -> None:
        assert not {"as queries", "as documents"} & make_passport(CheckpointFunction(spaced_checkpoint)).kinds.keys()
