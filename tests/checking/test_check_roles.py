"""A function that has a way of its own for queries is checked in that way, too."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from role_clients import Client, opened
from some_rows import mostly_slow
from tiny import tiny_bert

from embaudit.checkpoint import Checkpoint, LoadOptions, load_checkpoint
from embaudit.measures.quality.material import sample_material
from embaudit.pages.html import render
from embaudit.questions.blackbox.limit import find_cut, limit_findings
from embaudit.questions.check.check import CheckReport
from embaudit.questions.check.served import check_served


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    folder = tiny_bert(tmp_path_factory.mktemp("checked") / "tiny")
    return load_checkpoint(str(folder), LoadOptions(device="cpu"))


def checked(checkpoint: Checkpoint, **done: Any) -> CheckReport:
    report = check_served(opened(Client(checkpoint, **done)), sample_material().part(0.05))
    assert render(report.page())
    json.dumps(report.as_json(), allow_nan=False)
    return report


def in_roles(report: CheckReport) -> dict[str, str]:
    """What is said of queries or documents alone, by the finding's name."""
    return {one.name: one.sentence for one in report.findings if one.name.endswith(("_as_queries", "_of_queries"))}


def only_latin(text: str) -> str:
    if not text.isascii():
        raise ValueError("what is that")
    return text


NOISE = np.random.default_rng(0)
# (what is done to queries, the finding, a part of its sentence)
FAULTS: dict[str, tuple[dict[str, Callable[[Any], Any]], str, str]] = {
    "refused": ({"texts": only_latin}, "not_finite_as_queries", "hard texts get no vector that can be used"),
    "fewer numbers": ({"rows": lambda row: row[:8]}, "not_finite_as_queries", "a vector of 8 numbers, where others"),
    "one vector": ({"texts": lambda text: "the same"}, "same_vector_as_queries", "Asked for queries: "),
    "noise": (
        {"rows": lambda row: row + 0.3 * NOISE.normal(size=len(row))},
        "one_function_as_queries",
        "a text asked as a query",
    ),
    "cut": ({"texts": lambda text: text[:60]}, "tail_of_queries", "Of a long query, about 1"),
    "cut early": ({"texts": lambda text: text[:20]}, "tail_of_queries", "The last words of a query of 8 do not move"),
}


@pytest.mark.parametrize("fault", mostly_slow(FAULTS, 2))
def test_what_is_wrong_with_queries_alone_is_said(tiny: Checkpoint, fault: str) -> None:
    done, name, said = FAULTS[fault]
    found = in_roles(checked(tiny, **done))
    assert said.lower() in found[name].lower()
    assert len(found) <= 2


def test_nothing_is_said_where_nothing_is_done(tiny: Checkpoint) -> None:
    assert not in_roles(checked(tiny))


def test_what_is_wrong_with_all_texts_is_said_once(tiny: Checkpoint) -> None:
    names = [one.name for one in checked(tiny, texts=only_latin, documents=only_latin).findings]
    assert names.count("not_finite") == 1
    assert "not_finite_as_queries" not in names


def test_a_limit_is_that_of_documents(tiny: Checkpoint) -> None:
    """The longest documents are told by what is read of documents, however short queries are cut."""
    function = opened(Client(tiny, texts=lambda text: text[:60]))
    whole, cut = find_cut(function, "document"), find_cut(function, "query")
    assert whole is not None
    assert cut is not None
    assert whole.words is not None
    assert cut.words is not None
    assert cut.words < whole.words
    assert [one.name for one in limit_findings(function)] == ["tail", "tail_of_queries"]
