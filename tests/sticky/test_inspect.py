"""One token asked for by a person: which id is meant, and that its figures are those of the validation."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny import wordpiece_vocabulary

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.checkpoint.vocabulary import read_vocabulary
from embaudit.measures.sticky import StickySettings
from embaudit.measures.sticky.effects import Effect, measure_effects
from embaudit.measures.sticky.insertion import OPERATORS, SentencePair
from embaudit.measures.sticky.inspect import (
    decoded,
    distances,
    find_token,
    inspect_reference,
    inspect_tokens,
    prepare_reference,
    sticky_scores,
    validation_values,
)
from embaudit.measures.sticky.moments import insert_tokens
from embaudit.measures.sticky.plan import choose_controls
from embaudit.measures.sticky.points import Points, given_pairs
from embaudit.words.errors import UsageError

pytestmark = pytest.mark.usefixtures("one_thread")

VOCABULARY = wordpiece_vocabulary()
SENTENCES = [
    "the king of the north",
    "gold and iron",
    "a drug test",
    "war ships found in winter",
    "the long river",
    "poem of the moon",
    "state bank of america",
    "two birds and a tree",
    "red and blue paint",
    "snow all night",
]
PAIRS = [SentencePair(a, b, 0.0) for a, b in zip(SENTENCES[:5], SENTENCES[5:], strict=True)]
SETTINGS = StickySettings(controls=12, resamples=100)
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def entries(tiny: Checkpoint) -> Rows:
    return [dataclasses.asdict(entry) for entry in read_vocabulary(tiny.tokenizer, tiny.vocabulary_size)]


@pytest.fixture(scope="module")
def u(tiny: Checkpoint) -> float:
    """Three of the five pairs lie below it."""
    points = given_pairs(Encoder(tiny), PAIRS, 2.0, 8, 0, rotate_operators=True)
    return float(np.sort(points.before.ravel())[2:4].mean())


@pytest.fixture(scope="module")
def points(tiny: Checkpoint, u: float) -> Points:
    return given_pairs(Encoder(tiny), PAIRS, u, 8, 5)


@pytest.mark.parametrize(
    ("wanted", "token"),
    [
        ("7", "[SEP]"),
        ("0", "[PAD]"),
        ("5", "[UNK]"),
        ("[UNK]", "[UNK]"),
        ("007", "[SEP]"),
        ("text:7", "7"),
        ("##ing", "##ing"),
        ("[unused2]", "[unused2]"),
        ("river", "river"),
        ("River", "river"),
        (" river ", "river"),
        ("text:river", "river"),
        ("text:##ing", "##ing"),
        (str(len(VOCABULARY) - 1), VOCABULARY[-1]),
    ],
)
def test_the_id_that_a_person_means(tiny: Checkpoint, wanted: str, token: str) -> None:
    assert find_token(tiny, wanted) == VOCABULARY.index(token)


def test_a_text_of_several_tokens_is_told_in_pieces(tiny: Checkpoint) -> None:
    with pytest.raises(UsageError, match=r"'rivers' is not a token of .*: it becomes river ##s") as caught:
        find_token(tiny, "rivers")
    assert caught.value.next_step == "Give one of these, or an id."
    with pytest.raises(UsageError, match=r"'7 7' is not a token of .*: it becomes 7 7"):
        find_token(tiny, "text:7 7")
    with pytest.raises(UsageError, match="it becomes nothing"):
        find_token(tiny, "text:")


def test_an_id_beyond_the_matrix(tiny: Checkpoint) -> None:
    count = len(VOCABULARY)
    assert tiny.vocabulary_size == count
    with pytest.raises(UsageError, match=f"There is no token {count}: .* from 0 to {count - 1}") as caught:
        find_token(tiny, str(count))
    assert caught.value.next_step == f"For the text '{count}' write text:{count}."


def test_a_token_that_the_model_has_no_embedding_for(tiny: Checkpoint) -> None:
    tokenizer = copy.deepcopy(tiny.tokenizer)
    tokenizer.add_tokens(["xenolith"])
    larger = dataclasses.replace(tiny, tokenizer=tokenizer)
    with pytest.raises(UsageError, match=f"knows 'xenolith' as id {len(VOCABULARY)}, but the model"):
        find_token(larger, "xenolith")


@pytest.mark.parametrize("wanted", ["日", "text:☃"])
def test_a_text_that_the_tokenizer_does_not_know_is_no_token(tiny: Checkpoint, wanted: str) -> None:
    with pytest.raises(UsageError, match="is not a token"):
        find_token(tiny, wanted)


@pytest.fixture(scope="module")
def wanted() -> list[int]:
    """Not in ascending order, one of them twice."""
    return [VOCABULARY.index(token) for token in ("river", "##ing", "gold", "[MASK]", "##ing")]


@pytest.fixture(scope="module")
def found(tiny: Checkpoint, entries: Rows, points: Points, wanted: list[int]) -> Rows:
    return inspect_tokens(Encoder(tiny), points, wanted, entries, SETTINGS, 5)


def test_one_object_a_token_in_the_order_asked(found: Rows, wanted: list[int]) -> None:
    assert [row["id"] for row in found] == wanted
    assert found[1] == found[4]
    assert [row["token"] for row in found] == ["river", "##ing", "gold", "[MASK]", "##ing"]
    described = [(row["text"], row["category"], row["is_reachable"], row["origin"], row["script"]) for row in found]
    assert described[0] == ("river", "ok", True, "word", "Latin")
    assert described[1] == ("##ing", "unreachable_multi", True, "subword", "Latin")
    assert described[3] == ("[MASK]", "special", True, "special", "Common")
    assert json.loads(json.dumps(found)) == found


def test_figures_are_those_of_the_validation(
    tiny: Checkpoint, entries: Rows, points: Points, wanted: list[int], found: Rows
) -> None:
    encoder = Encoder(tiny)
    controls = choose_controls(entries, np.array(wanted), 12, 5)
    every = np.array([*wanted[:4], *controls])
    moments = insert_tokens(encoder, points, every, range(15))
    effects = measure_effects(points, moments, np.arange(16) > 3, 100, 5)
    named = {"p_pull": "pull_p_value", "p_slope": "retention_p_value", "slope": "retention"}
    named |= {"slope_low": "retention_low", "slope_high": "retention_high"}
    for row, effect in zip(found[:4], effects[:4], strict=True):
        for name in Effect.__dataclass_fields__:
            if column := named.get(name, name):
                value = getattr(effect, name)
                close = value if value is None or isinstance(value, str) else pytest.approx(value, abs=1e-5)
                assert row[column] == close, name
        assert (row["u"], row["draws"], row["anchors"]) == (points.u, 15, 5)
        assert (row["points"], row["points_below_u"], row["controls"]) == (15, 9, 12)


def test_rho_by_operator_from_single_encodes(tiny: Checkpoint, u: float, wanted: list[int], found: Rows) -> None:
    encoder = Encoder(tiny)
    for row, token in zip(found[:2], wanted[:2], strict=True):
        for operator in ("prefix", "suffix"):
            distances_to_u = []
            for pair in PAIRS:
                first, content = encoder.encode_texts([pair.first])[0], tiny.content_ids(pair.second)
                inserted = [token] * 8 + content if operator == "prefix" else content + [token] * 8
                plain, changed = (
                    float(first @ encoder.encode_ids([tiny.with_special_tokens(ids)])[0]) for ids in (content, inserted)
                )
                if plain < u:
                    distances_to_u.append(abs(changed - u))
            assert len(distances_to_u) == 3
            assert row[f"rho_{operator}"] == pytest.approx(np.mean(distances_to_u), abs=1e-5)
    for row in found:
        assert row["rho"] == pytest.approx(np.mean([row[f"rho_{operator}"] for operator in OPERATORS]), abs=1e-6)


def test_a_token_asked_for_is_never_its_own_control(tiny: Checkpoint, entries: Rows) -> None:
    ordinary = [row["token_id"] for row in entries if row["category"] == "ok" and row["origin"] == "word"]
    asked = ordinary[:-11]
    points = given_pairs(Encoder(tiny), PAIRS[:3], 2.0, 8, 5)
    found = inspect_tokens(Encoder(tiny), points, asked, entries, SETTINGS, 5)
    taken = set(choose_controls(entries, np.array(asked), 12, 5).tolist())
    assert {row["controls"] for row in found} == {len(taken)}
    assert not taken & set(asked)


def test_the_reference_protocol_of_some_tokens(tiny: Checkpoint, entries: Rows, wanted: list[int]) -> None:
    encoder = Encoder(tiny)
    validation, scoring = [(pair.first, pair.second) for pair in PAIRS], [("the king", "gold and snow")]
    found = inspect_reference(encoder, validation, scoring, wanted, entries, 4, 9)
    texts = ["river", "##ing", "gold", "[MASK]", "##ing"]
    assert [row["inserted"] for row in found] == texts
    assert [row["id"] for row in found] == wanted
    assert [row["origin"] for row in found] == ["word", "subword", "word", "special", "subword"]
    inputs = prepare_reference(encoder, validation, 4, 9)
    values = validation_values(inputs, distances(encoder, inputs, texts))
    inputs = prepare_reference(encoder, scoring, 4, 9)
    scores = sticky_scores(encoder, inputs, texts, distances(encoder, inputs, texts))
    assert [row["value"] for row in found] == pytest.approx(values.tolist())
    assert [row["score"] for row in found] == pytest.approx(scores.tolist(), rel=1e-4)
    assert len({row["score"] for row in found}) == 4

    without = inspect_reference(encoder, validation, None, wanted[:1], entries, 4, 9)
    assert without == [{**found[0], "score": None}]


def test_an_id_is_decoded_alone(minilm: Checkpoint) -> None:
    assert decoded(minilm, 16579) == "warlord"
    assert decoded(minilm, 2075) == "##ing"
    assert decoded(minilm, 1012) == "."


@pytest.mark.slow
@pytest.mark.usefixtures("all_threads")
def test_golden_figures_of_the_published_pairs(minilm: Checkpoint, encoder: Encoder, shared: Path) -> None:
    golden = json.loads((shared / "golden" / "std_definition_all_minilm_l6_v2.json").read_text("utf-8"))
    published = json.loads((shared / golden["pairs"]["file"]).read_text("utf-8"))
    pairs = [SentencePair(entry["sentence1"], entry["sentence2"], 0.0) for entry in published]
    assert len(pairs) == golden["pairs"]["total"]
    assert len(set(pairs)) == golden["pairs"]["distinct"]
    vocabulary = [
        {
            "token_id": token_id,
            "token": token,
            "text": token,
            "category": "ok",
            "is_reachable": True,
            "origin": "word",
            "script": "Latin",
        }
        for token_id, token in enumerate(minilm.tokenizer.convert_ids_to_tokens(list(range(30_522))))
        if token.isalpha() or token_id == 1063
    ]
    settings = StickySettings(controls=10, resamples=100)
    ids = [token["id"] for token in golden["tokens"]]
    points = given_pairs(encoder, pairs, golden["u"], settings.copies, 0)
    found = inspect_tokens(encoder, points, ids, vocabulary, settings, 0)
    for token, row in zip(golden["tokens"], found, strict=True):
        assert (row["id"], row["token"], row["points"], row["controls"]) == (token["id"], token["token"], 750, 10)
        assert row["rho_0"] == pytest.approx(golden["rho_0"], abs=golden["tolerance"])
        for operator in ("prefix", "suffix"):
            name = f"rho_{operator}"
            assert row[name] == pytest.approx(token[name], abs=golden["tolerance"]), (token["token"], operator)
        # The honest verdict on that list (method, section 1): pull between .05 and .3, loss negligible to weak.
        assert 0.05 < row["pull"] < 0.3
        assert row["severity"] in ("negligible", "weak")
