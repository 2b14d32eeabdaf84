"""Who built an index is told by its vectors: of made-up models, of those that are shipped, of the packaged one."""

from __future__ import annotations

import json
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest
from test_stored_alone import index_of
from tiny_index import TinyIndex, encoded

from embaudit.checkpoint import LoadOptions, load_checkpoint
from embaudit.declared.rule import Finding
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.questions.vectors.builder import builder_findings, shipped_fingerprints
from embaudit.questions.vectors.fingerprint import Fingerprint, origin_of
from embaudit.questions.vectors.fitted import FEWEST_OWNERS, fitted
from embaudit.questions.vectors.report import look_at

D = 256
SENTENCES = [
    f"{one} {other}"
    for one, other in pairwise(["the", "river", "rises", "in", "a", "wet", "spring", "and", "floods", "old", "mills"])
]


def rows_of(model: str, rows: int, seed: int) -> np.ndarray:
    """Unit rows of a made-up model: what is the model's, what is of the store's subject, and what is of each text."""
    own, store = np.random.default_rng(abs(sum(map(ord, model)))), np.random.default_rng(seed)
    mean, spread, still = own.standard_normal(D), np.exp(0.7 * own.standard_normal(D)), own.choice(D, 4, replace=False)
    subject, texts = store.standard_normal(D), store.standard_normal((rows, D))
    if model.startswith("pointed"):
        vectors = 2 * mean + 0.5 * subject + texts
    elif model.startswith("zeros"):
        vectors = 0.5 * subject + texts
        vectors[:, still] = 1e-9
    elif model.startswith("spread"):
        vectors = spread * (0.5 * subject + texts)
    else:
        vectors = 0.5 * subject + texts
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


MODELS = ("pointed a", "pointed b", "zeros", "spread a", "spread b", "plain")
MEASURES = {"pointed": "direction", "zeros": "still", "spread": "spread"}


def made(models: tuple[str, ...] = MODELS[:-1]) -> list[Fingerprint]:
    stores = {model: {f"owner {n}": [rows_of(model, 30 + n, n)] for n in range(6)} for model in MODELS}
    return [
        fitted(model, stores[model], [one for other in MODELS if other != model for [one] in stores[other].values()])
        for model in models
    ]


KNOWN = made()


@pytest.mark.parametrize("model", MODELS[:-1])
def test_a_fingerprint_is_told_by_what_sets_its_model_apart(model: str) -> None:
    one = KNOWN[MODELS.index(model)]
    assert one.measure == MEASURES[model.split()[0]]
    assert (one.owners, one.stores, one.rows) == (6, 6, 6 * 30 + 15)
    assert one.limit - one.highest_other >= 0.1


def told(vectors: np.ndarray, known: list[Fingerprint] = KNOWN) -> tuple[str, str | None, float | None]:
    """What is said of a store's origin, the model that is named, and its share of rows."""
    origin = origin_of(vectors, known)
    assert origin is not None
    best = origin.best
    return origin.told, best and best.fingerprint.model, best and best.share


@pytest.mark.parametrize("model", MODELS[:-1])
@pytest.mark.parametrize("rows", [10, 60])
def test_a_store_of_another_owner_is_named_and_never_as_another_model(model: str, rows: int) -> None:
    for seed in range(100, 110):
        assert told(rows_of(model, rows, seed))[:2] == ("named", model), seed


@pytest.mark.parametrize("rows", [1, 3, 10, 60])
@pytest.mark.parametrize("model", ["plain", "pointed elsewhere", "zeros elsewhere", "spread elsewhere"])
def test_a_model_without_a_fingerprint_is_never_named(model: str, rows: int) -> None:
    for seed in range(10):
        # The spread of few rows is not known.
        assert told(rows_of(model, rows, seed)) == ("nobody known" if rows >= 10 else "cannot tell", None, None)


@pytest.mark.parametrize("model", ["pointed a", "zeros"])
def test_one_row_is_enough_where_rows_tell_and_a_mixture_is_told_with_its_share(model: str) -> None:
    assert told(rows_of(model, 1, 100))[:2] == ("named", model)
    for other in ("plain", "spread a"):
        mixed = np.concatenate([rows_of(model, 24, 100), rows_of(other, 56, 101)])
        assert told(mixed) == ("some rows", model, 0.3)


def test_two_models_of_which_rows_tell_are_no_single_one_s() -> None:
    both = np.concatenate([rows_of("pointed a", 1, 1), rows_of("pointed b", 1, 2)])
    assert told(both) == ("cannot tell", None, None)


CHANGES = {
    "float16": lambda units: units.astype(np.float16),
    "another length": lambda units: 7 * units,
    "decimals": lambda units: units.round(4),
    "codes of 8 bits": lambda units: np.rint(units / np.abs(units).max() * 127) / 127,
    "codes of 4 bits": lambda units: np.rint(units / np.abs(units).max() * 7) / 7,
}


@pytest.mark.parametrize("model", ["pointed a", "zeros", "spread a"])
@pytest.mark.parametrize("change", CHANGES)
def test_rounded_vectors_are_named_or_said_not_to_be_told(model: str, change: str) -> None:
    cannot = change == "codes of 4 bits" and model == "zeros"
    found = told(CHANGES[change](rows_of(model, 60, 100)))[:2]
    assert found == (("cannot tell", None) if cannot else ("named", model))


def test_codes_and_other_dimensions_are_not_told_at_all() -> None:
    assert origin_of(rows_of("zeros", 9, 0)[:, 1:], KNOWN) is None
    assert origin_of((100 * rows_of("zeros", 9, 0)).astype(np.int8), KNOWN) is None
    assert origin_of(np.empty((0, D)), KNOWN) is None


def test_a_model_that_nothing_sets_apart_has_no_measure_and_is_never_named() -> None:
    plain = fitted("plain", {f"owner {n}": [rows_of("plain", 40, n)] for n in range(6)}, [rows_of("zeros", 40, 0)])
    assert plain.measure is None
    assert origin_of(rows_of("plain", 40, 100), [plain]) is None


def test_a_fingerprint_is_the_same_after_it_was_written() -> None:
    for one in KNOWN:
        again = Fingerprint.from_json(json.loads(json.dumps(one.as_json())))
        for name in ("model", "measure", "still", "owners"):
            assert getattr(again, name) == getattr(one, name)
        assert again.direction == pytest.approx(one.direction, abs=1e-3)
        assert again.limit == pytest.approx(one.limit, abs=1e-3)


def test_what_is_shipped_is_small_and_rests_on_five_owners() -> None:
    file = files("embaudit.questions.vectors").joinpath("known", "fingerprints.json")
    assert len(file.read_bytes()) < 200_000
    shipped = shipped_fingerprints()
    assert {one.model for one in shipped} == {
        "all-MiniLM-L6-v2",
        "embedding-001",
        "gemini-embedding-001",
        "nomic-embed-text",
        "text-embedding-004",
        "text-embedding-3-small",
        "text-embedding-ada-002",
    }
    text = files("embaudit.questions.vectors").joinpath("known", "README.md").read_text("utf-8")
    for one in shipped:
        assert one.owners >= FEWEST_OWNERS
        assert one.measure is not None
        assert one.held_out is not None
        assert one.held_out.wrongly == 0
        row = f"| {one.model} | {one.dimension:,} | {one.owners} | {one.stores} | {one.rows:,} | {one.measure} |"
        assert row in text


def built_like(one: Fingerprint, rows: int) -> np.ndarray:
    """Rows that have of a fingerprint what its model is told by, and nothing else of it."""
    if one.measure == "direction":
        return like(one.model, rows)
    vectors = np.random.default_rng(rows).standard_normal((rows, one.dimension))
    if one.measure == "spread":
        return vectors * np.exp(one.spread)
    vectors[:, list(one.still)] = 1e-9
    return vectors


@pytest.mark.parametrize("place", range(7))
@pytest.mark.parametrize("rows", [1, 12, 60])
def test_each_shipped_model_is_named_and_never_another_beside_it(place: int, rows: int) -> None:
    one = shipped_fingerprints()[place]
    origin = origin_of(built_like(one, rows), shipped_fingerprints())
    assert origin is not None
    if one.measure == "spread" and rows < 10:
        assert origin.told == "cannot tell"
    else:
        assert origin.best is not None
        assert (origin.told, origin.best.fingerprint.model, origin.also) == ("named", one.model, ())


def test_a_preview_that_may_pass_for_its_model_is_said() -> None:
    [found] = [one for one in look_at(index_of(like("gemini-embedding-001", 20))).findings if one.name == "builder"]
    assert found.sentence.startswith(
        "The vectors are those of gemini-embedding-001 (or of gemini-embedding-exp-03-07, its preview), by the mean"
    )


@pytest.mark.parametrize("dimension", [384, 768, 1_536, 3_072])
def test_random_vectors_are_no_known_model_s(dimension: int) -> None:
    rng = np.random.default_rng(dimension)
    for rows in (1, 12, 40):
        vectors = rng.standard_normal(dimension) + rng.standard_normal((rows, dimension))
        cannot = rows == 1 and dimension == 1_536
        assert told(vectors, shipped_fingerprints())[0] == ("cannot tell" if cannot else "nobody known")


def like(model: str, rows: int, seed: int = 0) -> np.ndarray:
    """Rows whose cosine to a shipped model's direction is .8."""
    one = next(one for one in shipped_fingerprints() if one.model == model)
    noise = np.random.default_rng(seed).standard_normal((rows, one.dimension))
    noise -= (noise @ one.direction)[:, None] * one.direction
    return (0.8 * one.direction + 0.6 * noise / np.linalg.norm(noise, axis=1, keepdims=True)).astype(np.float32)


def test_the_builder_is_named_without_a_function_and_with_one_of_another_dimension(tiny_index: TinyIndex) -> None:
    index = index_of(like("text-embedding-ada-002", 40), tiny_index.texts[:40])
    found = [one for one in look_at(index).findings if one.name == "builder"]
    assert [(one.level, one.sentence) for one in found] == [
        (
            "ok",
            "The vectors are those of text-embedding-ada-002, by the mean direction of that model (.80 at the median; "
            "other models of 1,536 numbers at most .10).",
        )
    ]
    assert "6 of 6 of this model were named so (at least 61%) and 0 of 6 of other models" in found[0].meaning
    tiny = CheckpointFunction(tiny_index.load())
    with_function = look_at(index, tiny, load=lambda name: tiny)
    names = [one.name for one in with_function.findings]
    assert "another_dimension" in names
    assert [one.sentence for one in with_function.findings if one.name == "builder"] == [found[0].sentence]


def builder_of(vectors: np.ndarray) -> list[Finding]:
    return [one for one in look_at(index_of(vectors.astype(np.float32))).findings if one.name == "builder"]


def test_a_part_of_the_rows_is_told_with_what_to_do_unless_the_others_are_few() -> None:
    others = np.random.default_rng(1).standard_normal((30, 768))
    [found] = builder_of(np.concatenate([like("embedding-001", 10), others]))
    assert (found.level, found.value) == ("look", 0.25)
    assert found.sentence.startswith("25% of 40 different vectors are those of embedding-001, by the mean direction")
    assert found.sentence.endswith("The others are not, row 11 first.")
    assert found.advice.startswith("Encode the other rows again by embedding-001")
    [found] = builder_of(np.concatenate([like("embedding-001", 98), others[:2]]))
    assert found.level == "ok"
    assert found.sentence.startswith("98% of 100 different vectors are those of embedding-001, by the mean direction")


def test_nobody_known_and_what_cannot_be_told_are_said_so() -> None:
    rng = np.random.default_rng(2)
    said = {}
    for name, vectors in {
        "other": rng.standard_normal((30, 768)),
        "few": rng.standard_normal((3, 1_536)),
        "coarse": rng.integers(-2, 3, (30, 384)).astype(float),
        "odd": rng.standard_normal((30, 100)),
    }.items():
        said[name] = [(one.level, one.sentence) for one in builder_of(vectors)]
    assert said == {
        "other": [
            (
                "ok",
                "The vectors are those of no model of 768 numbers that can be told by them: embedding-001, "
                "nomic-embed-text, text-embedding-004.",
            )
        ],
        "few": [
            (
                "not measured",
                "Cannot tell who built the index from its vectors alone: text-embedding-3-small is told from 10 "
                "different rows on, and there are 3.",
            )
        ],
        "coarse": [
            (
                "not measured",
                "Cannot tell who built the index from its vectors alone: too many of its numbers are zero to see which "
                "are always zero, as with all-MiniLM-L6-v2.",
            )
        ],
        "odd": [],
    }


@pytest.fixture(scope="module")
def minilm() -> CheckpointFunction:
    return CheckpointFunction(load_checkpoint("packaged:all-MiniLM-L6-v2", LoadOptions(device="cpu")))


def test_the_packaged_checkpoint_is_known_by_a_few_texts_and_by_its_own_vectors_nothing_is_said(
    minilm: CheckpointFunction,
) -> None:
    assert minilm.checkpoint is not None
    vectors = encoded(minilm.checkpoint, SENTENCES)
    for rows in (vectors, vectors[:1], vectors.astype(np.float16), 3 * vectors):
        [found] = builder_findings(look_at(index_of(rows)).alone)
        assert found.level == "ok"
        assert found.sentence == (
            "The vectors are those of all-MiniLM-L6-v2 (or of a model trained on from it or from its base, "
            "nreimers/MiniLM-L6-H384-uncased), by the dimensions that this model leaves at zero: 127, 223, 319 "
            "(from 0)."
        )
    own = look_at(index_of(vectors, SENTENCES), minilm, load=lambda name: minilm)
    assert own.verdict == "wholly its own"
    assert "builder" not in {one.name for one in own.findings}
    # Of the same model, and other texts: whose they are is worth knowing.
    moved = look_at(index_of(vectors, SENTENCES[::-1]), minilm, load=lambda name: minilm, with_explanation=False)
    assert "builder" in {one.name for one in moved.findings}
