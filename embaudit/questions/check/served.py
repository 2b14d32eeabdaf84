"""The check of a function whose files nobody sees: a served model, or an object of the user's program."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from embaudit.declared.rule import LEVELS, Finding, Rule, guarded, number
from embaudit.embedders.function import LISTS, Answers, EmbeddingFunction
from embaudit.embedders.kept import TOGETHER, RequestPlan, told_as_one
from embaudit.measures.integrity.function import SAME_VECTOR
from embaudit.measures.quality.lengths import LENGTHS, Declared, length_findings
from embaudit.measures.quality.material import Material, sample_material
from embaudit.measures.quality.measured import Measured
from embaudit.questions.blackbox.limit import (
    MAY_HAVE_NONE,
    NO_VECTOR,
    NOT_FINITE,
    TAIL,
    hard_texts,
    limit_findings,
    number_findings,
)
from embaudit.questions.blackbox.quality import CallerPrompts, served_quality
from embaudit.questions.check.check import CheckReport
from embaudit.questions.parity.asking import ask_as, ask_otherwise, confirmed, still_the_same
from embaudit.questions.parity.compare import HALF, ROLES, SAME
from embaudit.questions.parity.findings import UNSTEADY, asked_for, finding_of_asking
from embaudit.questions.parity.parity import asked_alone
from embaudit.questions.parity.ranges import ask_many_at_once
from embaudit.questions.parity.requested import ignored_dimensions
from embaudit.questions.parity.without_vector import Request, SteadyControl, requests_of
from embaudit.words.sentences import within

if TYPE_CHECKING:
    from embaudit.checkpoint import TextKind


ONE_FUNCTION = Rule(
    "one_function",
    look_if=f"1 − cosine above {number(SAME)} between a text alone and in a batch, again, with seven others, or as "
    "base64",
    problem_if=f"above what the server rounds (ten times what it rounds alone; {number(HALF)} where that is not "
    "known), or no vector so",
    reason=f"half precision in batches stays below {number(HALF)}. `not measured` if no text has a vector, or if "
    "vectors do not stay",
)
IN_A_ROLE = Rule(
    "{rule}_as_{role}",
    look_if="as above",
    problem_if="as above",
    reason="of what has a way of its own for queries (`…_as_queries`), or documents: the same hard texts asked for "
    "so, for `not_finite`, `no_vector`, `same_vector` and `one_function`. What is said of texts is not said again",
)
INSIDE = Rule(
    "inside", reason="`not measured`: what happens inside (weights, layers, states, tokens) is not seen by its vectors"
)
# Counted beside a faithful server of 256 tokens a text: what is asked besides hard texts and the material, that is
# again and in other ways (64 requests), for the limit (48), for other readings (14), and at the end (4).
OTHER_REQUESTS, OTHER_CHARACTERS = 130, 85_000


def check_served(
    function: EmbeddingFunction, material: Material | None = None, asking: CallerPrompts | None = None
) -> CheckReport:
    """Check a function by its vectors alone: numbers, one function, limit, quality, lengths.

    Args:
        material: scored pairs and judged queries; by default, the embedded sample.
        asking: the prompts that its callers put before texts.

    Raises:
        EmbauditError: if it gives no vectors at all.
    """
    start = time.monotonic()
    figures: dict[str, Any] = {}
    texts = hard_texts()
    material, asking = material or sample_material(), asking or CallerPrompts()
    with told_as_one(function, lambda: _plan(function, texts, material, asking)):
        # Fails here if it does not answer: later, what fails is a finding.
        first = function.requests
        alone = function.encode(texts, most=1)
        log = requests_of({"hard": texts}, {"hard": alone}, first + 1, function.requests - first)
        found = list(_parts(function, texts, alone, log, material, asking, figures))
        findings = _steady(function.live, log, found, figures)
    dimension = alone.vectors.shape[1]
    return CheckReport(
        function.name,
        function.identity or None,
        findings,
        figures,
        time.monotonic() - start,
        kind=function.kind,
        interface=f"{function.interface}, {dimension} dimensions",
    )


def _plan(function: EmbeddingFunction, texts: Sequence[str], material: Material, asking: CallerPrompts) -> RequestPlan:
    """What a check asks of an endpoint, about."""
    by_role = {
        "text": [text for pairs in material.pairs for text in asking.texts([*pairs.firsts, *pairs.seconds])],
        "query": [text for some in material.collections for text in asking.queries(some.queries)],
        "document": [text for some in material.collections for text in asking.documents(some.documents)],
    }
    together = max(1, int(getattr(function.live, "most_texts", TOGETHER)))
    batches = sum(-(-len(set(some)) // together) for some in by_role.values())
    characters = sum(len(text) for some in by_role.values() for text in set(some))
    return RequestPlan(
        len(texts) + OTHER_REQUESTS + batches, sum(map(len, texts)) + OTHER_CHARACTERS + characters, time.monotonic()
    )


def _parts(
    function: EmbeddingFunction,
    texts: Sequence[str],
    alone: Answers,
    log: Sequence[Request],
    material: Material,
    asking: CallerPrompts,
    figures: dict[str, Any],
) -> Iterable[Finding]:
    yield from ignored_dimensions(function, alone.vectors.shape[1])
    yield from guarded("numbers", lambda: list(number_findings(texts, alone, function.kind)))
    # Whether a text gets the same vector again cannot be told from kept ones.
    one_function = guarded(ONE_FUNCTION.name, lambda: [_one_function(function.live, texts, alone, log)])
    yield from one_function
    if any(one.name == UNSTEADY.name for one in one_function):
        return
    yield from guarded("roles", lambda: list(_in_roles(function, texts, alone)))
    documents = [text for collection in material.collections for text in asking.documents(collection.documents)]
    yield from guarded(TAIL.name, lambda: limit_findings(function.live, documents))

    measured: list[Measured] = []

    def quality() -> list[Finding]:
        report = served_quality(lambda some, role: function.encode(some, role).vectors, material, asking)
        figures.update(report.figures)
        measured.extend(report.measured)
        return list(report.findings)

    yield from guarded("quality", quality)
    yield from guarded(
        LENGTHS.name, lambda: length_findings([alone.vectors], measured, Declared(is_served=True), figures)
    )
    if function.why_closed:
        yield INSIDE.finding(
            "not measured",
            f"What happens inside was not looked at (weights, layers, states, tokens): {function.why_closed}.",
        )


def _in_roles(function: EmbeddingFunction, texts: Sequence[str], alone: Answers) -> Iterable[Finding]:
    """What is wrong with queries, or documents, alone, where they are asked for in a way of their own."""
    usable = np.isfinite(alone.vectors).all(axis=1)
    told = {one.name: one.value or 0.0 for one in number_findings(texts, alone, function.kind) if one.level != "ok"}
    # What has no vector as a text is said of texts, and nobody asks for a query without a word.
    some = [text for place, text in enumerate(texts) if usable[place] and text not in MAY_HAVE_NONE]
    asked: list[TextKind] = []
    for kind, role in ROLES.items():
        if function.alike(role) in ("text", *asked):
            continue
        asked.append(role)
        answers = asked_alone(function.live, {"plain": some[:1], kind: some})[kind]
        behind = asked_for(kind)
        for one in number_findings(some, answers, function.kind):
            is_new = one.name != SAME_VECTOR.name or (one.value or 0.0) > told.get(one.name, 0.0)
            if one.level != "ok" and is_new:
                sentence = f"Asked for {asked_for(kind)}: {within(one.sentence)}"
                yield replace(one, sentence=sentence, name=IN_A_ROLE.name.format(rule=one.name, role=behind))
        ways = [finding_of_asking(one) for one in ask_as(function.live, role, some, answers.vectors)]
        if ways and (worst := _worst(ways)).level != "ok":
            yield replace(worst, name=IN_A_ROLE.name.format(rule=ONE_FUNCTION.name, role=behind))


def _steady(
    function: EmbeddingFunction, log: Sequence[Request], findings: list[Finding], figures: dict[str, Any]
) -> tuple[Finding, ...]:
    """The findings, if texts still have the vectors that they had; otherwise that they have not.

    A model that was exchanged meanwhile explains a limit, a loss and a batch, and none of them is there.
    """
    drifted = [one for one in findings if one.name == UNSTEADY.name]
    if not drifted:
        moved = still_the_same(function, log) if function.may_depend_on_asking else None
        if moved is None:
            return tuple(findings)
        drifted = [replace(finding_of_asking(moved), name=UNSTEADY.name)]
    figures.clear()
    lacking = [one for one in findings if one.name in (NOT_FINITE.name, NO_VECTOR.name)]
    unmeasured = ONE_FUNCTION.finding(
        "not measured",
        "Batches, the limit, scores and lengths were not measured: they rest on vectors that do not stay.",
        advice="Look first at why the same text gets another vector.",
    )
    return (*drifted, *lacking, unmeasured)


def _one_function(function: EmbeddingFunction, texts: Sequence[str], alone: Answers, log: Sequence[Request]) -> Finding:
    """The worst of what comes of asking in other ways."""
    has_vector = np.isfinite(alone.vectors).all(axis=1) & (np.linalg.norm(alone.vectors, axis=1) > 0)
    places = np.flatnonzero(has_vector).tolist()
    if not places:
        sentence = "Whether a text gets one vector however it is asked was not measured: none has a vector."
        return ONE_FUNCTION.finding("not measured", sentence)
    # Texts of all kinds and lengths.
    places = places[:: max(1, len(places) // 24)]
    ways = list(ask_otherwise(function, None, [texts[place] for place in places], alone.vectors[places], log=log))
    if not any(one.is_off for one in ways):
        some, rows = [texts[place] for place in places], alone.vectors[places]
        many = confirmed(lambda: ask_many_at_once(function, some, rows, HALF), SteadyControl(function, log))
        ways += [] if many is None else [many]
    unsteady = next((one for one in ways if not one.is_repeatable), None)
    if unsteady is not None:
        return replace(finding_of_asking(unsteady), name=UNSTEADY.name)
    # Lists in place of base64 say nothing of base64.
    worst = _worst([finding_of_asking(one) for one in ways if one.cause != LISTS])
    if worst.level == "ok":
        how = "alone, in batches, again, and while others are asked"
        if not function.takes_many_at_once:
            how = "alone, in batches, and again"
        sentence = f"A text gets one vector {how} (1 − cosine at most {worst.value:.1e})."
        return replace(worst, sentence=sentence, name=ONE_FUNCTION.name)
    return replace(worst, name=ONE_FUNCTION.name)


def _worst(found: Sequence[Finding]) -> Finding:
    return min(found, key=lambda one: (LEVELS.index(one.level), -(one.value or 0.0)))
