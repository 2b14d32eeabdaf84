"""The one line above everything: what follows from which findings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from role_clients import Client, opened
from some_rows import mostly_slow

from embaudit.checkpoint import Checkpoint
from embaudit.cli.reference import catalogue
from embaudit.declared.rule import Finding, guarded
from embaudit.measures.quality.material import sample_material
from embaudit.pages.html import render
from embaudit.questions.blackbox.limit import find_cut, limit_findings
from embaudit.questions.check.check import CheckReport
from embaudit.questions.check.served import check_served
from embaudit.questions.check.verdict import CAUSES, verdict_of, verdict_of_audit
from embaudit.words.errors import UsageError


def finding(level: str, name: str) -> Finding:
    return Finding(level, f"{name} is {level}.", name=name)  # type: ignore[arg-type]


FAILED = guarded("numerics", lambda: 1 / 0)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    ("findings", "kind", "line"),
    [
        ([], "nothing found wrong", "Nothing found wrong."),
        ([finding("ok", "norm")], "nothing found wrong", "Nothing found wrong."),
        ([finding("look", "norm")], "look first", "Look at 1 thing first."),
        ([finding("look", "norm"), finding("look", "tail")], "look first", "Look at 2 things first."),
        ([finding("not measured", "tail")], "nothing found wrong", "Nothing found wrong."),
        ([finding("look", "norm"), *FAILED], "could not be checked", "Could not be checked as a whole"),
        ([finding("problem", "norm"), *FAILED], "do not serve", "Do not serve: norm is problem."),
    ],
)
def test_what_follows_from_findings(findings: list[Finding], kind: str, line: str) -> None:
    verdict = verdict_of(findings)
    assert verdict.kind == kind
    assert verdict.line.startswith(line)
    assert verdict.unmeasured == tuple(one.sentence for one in findings if one.level == "not measured")


@pytest.mark.parametrize(
    ("names", "cause"),
    [
        (("no_better_than_words", "untrained_layers"), "untrained_layers"),
        (("untrained_layers", "letter_case"), "letter_case"),
        (("lost_in_layer", "better_pooling"), "better_pooling"),
        (("something_new", "collapsed"), "collapsed"),
        (("something_new",), "something_new"),
    ],
)
def test_the_cause_comes_first_whatever_ran_first(names: tuple[str, ...], cause: str) -> None:
    for order in (names, names[::-1]):
        verdict = verdict_of([finding("problem", name) for name in order])
        assert verdict.cause is not None
        assert verdict.cause.name == cause


@pytest.mark.parametrize(
    ("problem", "look", "cause"),
    [
        ("lost_in_layer", "rounded_weights", "rounded_weights"),
        ("collapsed", "unusual_config", "unusual_config"),
        ("no_better_than_words", "short_limit", "no_better_than_words"),
        ("untrained_layers", "rounded_weights", "untrained_layers"),
        ("better_pooling", "rounded_weights", "better_pooling"),
    ],
)
def test_low_scores_are_explained_by_what_is_to_be_looked_at(problem: str, look: str, cause: str) -> None:
    verdict = verdict_of([finding("problem", problem), finding("look", look)])
    assert verdict.kind == "do not serve"
    assert verdict.cause is not None
    assert verdict.cause.name == cause


# What integrity and quality may find, and what measures that run after them may add.
FOUND_FIRST = [
    *([finding(level, name)] for level in ("problem", "look", "ok") for name in ("norm", "collapsed", "short_limit")),
    [],
    FAILED,
]
FOUND_LATER = [[], *([finding(level, "worst_token")] for level in ("problem", "look", "not measured", "ok"))]
# From better to worse: what is found later may only add to it.
ORDER = ("nothing found wrong", "look first", "could not be checked", "do not serve")


@pytest.mark.parametrize("later", FOUND_LATER)
@pytest.mark.parametrize("second", FOUND_FIRST)
@pytest.mark.parametrize("first", FOUND_FIRST)
def test_nothing_that_is_said_early_is_contradicted_at_the_end(
    first: list[Finding], second: list[Finding], later: list[Finding]
) -> None:
    early = [*(("integrity", one) for one in first), *(("quality", one) for one in second)]
    if not {"integrity", "quality"} <= {measure for measure, _ in early}:
        return
    so_far, end = verdict_of_audit(early), verdict_of_audit([*early, *(("sticky", one) for one in later)])
    assert ORDER.index(end.kind) >= ORDER.index(so_far.kind)
    assert end.looks >= so_far.looks
    if so_far.kind == "do not serve":
        assert end.line == so_far.line
        assert end.cause is so_far.cause
        assert so_far.so_far.startswith(so_far.line)
    else:
        assert end.kind != "do not serve"
        assert so_far.so_far.startswith("So far ")
    # It says why, and what to do.
    assert (so_far.first is None) == (so_far.kind == "nothing found wrong")
    assert so_far.first is None or so_far.first.sentence.rstrip(".") in so_far.so_far


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([finding("ok", "norm")], "So far fit to be served, as far as files, network and scores tell."),
        (
            [finding("look", "norm")],
            "So far fit to be served, as far as files, network and scores tell (1 thing to look at: norm is look).",
        ),
        (
            [finding("look", "short_limit"), replace(finding("look", "tail"), advice="Cut it.")],
            "So far fit to be served, as far as files, network and scores tell (2 things to look at, first: "
            "short_limit is look).",
        ),
        (
            [replace(finding("problem", "norm"), advice="Train it.")],
            "Do not serve: norm is problem. → Train it.",
        ),
        (FAILED, "So far not all could be checked, and what was checked is sound: Numerics could not be checked: "),
    ],
)
def test_what_is_said_early(found: list[Finding], said: str) -> None:
    assert verdict_of(found).so_far.startswith(said)


def test_a_cause_has_one_rank() -> None:
    assert len(set(CAUSES)) == len(CAUSES)


@pytest.mark.parametrize("table", ["integrity", "quality"])
def test_every_rule_that_finds_problems_has_a_rank(table: str) -> None:
    rules = [rule.name for _, rule in catalogue()[table] if rule.cells[2]]
    assert len(rules) > 4
    for name in rules:
        # Of a name with a part, one is enough: others are the same problem.
        assert any(re.fullmatch(re.sub(r"\{\w+\}", r"\\w+", name), cause) for cause in CAUSES), name


def test_a_part_that_fails_says_why() -> None:
    (failed,) = FAILED
    assert failed.level == "not measured"
    assert "Numerics could not be checked: ZeroDivisionError" in failed.sentence

    def raises() -> list[Finding]:
        raise UsageError("The table is empty.", next_step="Fill it.")

    (expected,) = guarded("quality", raises)
    assert expected.sentence == "Quality could not be checked: The table is empty."
    assert expected.advice == "Fill it."


# ---- A function that has a way of its own for queries is checked in that way, too ----


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
