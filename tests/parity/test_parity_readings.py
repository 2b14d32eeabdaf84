"""How a text can be read: the declared reading is the checkpoint's own, and each alternative is another one."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.checkpoint.agreement import WORDS
from embaudit.questions.parity.clients import HEADERS, TEXT_CHANGES
from embaudit.questions.parity.compare import FILLERS, SHORT_WORDS, apart, compare_kind, text_of, texts_by_kind
from embaudit.questions.parity.explain import explain
from embaudit.questions.parity.readings import alternatives, declared, whole_alternatives
from embaudit.questions.parity.requested import forms_of
from embaudit.questions.parity.vectors import DECLARED, Maker, PoolingVariant

VECTORS = st.lists(st.lists(st.floats(-3, 3), min_size=4, max_size=4), min_size=1, max_size=5)


def test_the_declared_reading_is_the_checkpoints_own(served_checkpoint: Checkpoint) -> None:
    texts = [text for some in texts_by_kind(served_checkpoint).values() for text in some]
    read = declared(served_checkpoint).windows(texts)
    assert [[*window.ids] for (window,) in read] == served_checkpoint.tokenize(texts)


def test_every_alternative_reads_some_text_otherwise(served_checkpoint: Checkpoint) -> None:
    texts = [text for some in texts_by_kind(served_checkpoint).values() for text in some]
    start = declared(served_checkpoint)
    usual = start.windows(texts)
    others = [*alternatives(start), *whole_alternatives(start)]
    aspects = {reading.differs[0][0] for reading in others}
    usual_aspects = {"text", "cut", "tokenizer", "prompt", "special tokens", "attention", "limit", "header"}
    assert aspects == {*usual_aspects, "padding"}
    assert "puts 'find: ' before texts" in [reading.said[0] for reading in others]
    # A BERT tokenizer does some of it by itself; of what it does not, each shows on some kind of text.
    same = {
        reading.said[0] for reading in others if reading.windows(texts) == usual and reading.attention == "declared"
    }
    # More characters or words than its texts have.
    same = {sentence for sentence in same if not re.search(r"\d (characters|words)$", sentence)}
    assert same <= {
        "lower-cases texts",
        "upper-cases texts",
        "strips white space at the ends of texts",
        "replaces newlines by spaces",
        "replaces tabs by spaces",
        "replaces tabs and newlines by spaces",
        "collapses white space",
        "collapses white space within texts",
        "collapses spaces",
        "collapses newlines",
        "strips newlines at the ends of texts",
        "writes newlines as CR LF",
        "strips accents",
        "strips combining characters (NFD)",
        "strips combining characters (NFKD)",
        "normalises Unicode to NFC",
        "normalises Unicode to NFD",
        "drops zero characters",
        "reads ' ' for texts with nothing in them",
        "drops control characters",
        "puts a space before texts",
        "puts a newline after texts",
        "puts a space after texts",
        r"puts '\n' before texts",
        r"puts '\n\n' before texts",
        "lower-cases and strips accents",
    }


def test_the_texts_tell_whatever_is_done_to_them_apart(spaced_checkpoint: Checkpoint) -> None:
    texts = [text for some in texts_by_kind(spaced_checkpoint).values() for text in some]
    made = {sentence: tuple(map(change, texts)) for sentence, change in TEXT_CHANGES.items()}
    assert tuple(texts) not in made.values()
    assert len(set(made.values())) == len(made)
    # Where the tokenizer sees every byte, each shows in what is read.
    start = declared(spaced_checkpoint)
    usual = start.windows(texts)
    readings = [*alternatives(start), *whole_alternatives(start)]
    shown = {one.said[0] for one in readings if one.differs[0][0] in ("text", "header") and one.windows(texts) != usual}
    assert made.keys() <= shown
    assert {f"puts {header!r} before texts" for header in HEADERS} <= shown


def test_a_tokenizer_that_is_tried_does_what_is_said_of_it(served_checkpoint: Checkpoint) -> None:
    tried = {
        one.said[0]: one.checkpoint.tokenizer.backend_tokenizer.normalizer.normalize_str("Éa 漢字")
        for one in alternatives(declared(served_checkpoint))
        if one.differs[0][0] == "tokenizer" and one.checkpoint.tokenizer is not served_checkpoint.tokenizer
    }
    assert {sentence: re.sub(" +", " ", text).strip() for sentence, text in tried.items()} == {
        "does not lower-case": "Ea 漢 字",
        "does not lower-case or strip accents": "Éa 漢 字",
        "lower-cases but keeps accents": "éa 漢 字",
        "lower-cases and strips accents": "ea 漢 字",
        "does not separate Chinese characters": "ea 漢字",
    }


def test_windows_hold_every_token_once(served_checkpoint: Checkpoint) -> None:
    (reading,) = (one for one in alternatives(declared(served_checkpoint)) if one.said == (WINDOWS_OF_32,))
    text = text_of(served_checkpoint, 100)
    (windows,) = reading.windows([text])
    parts = [window.ids for window in windows]
    assert len(parts) > 1
    assert [window.weight for window in windows] == [len(ids) for ids in parts]
    assert all(len(ids) <= 32 for ids in parts)
    own = [token for ids in parts for token in ids[1:-1]]
    assert own == served_checkpoint.own_ids([text])[0]


WINDOWS_OF_32 = "cuts texts into windows of 32 tokens and averages their vectors"


@pytest.mark.parametrize("tokens", [24, 60, 127, 128, 129, 256])
def test_a_text_has_the_tokens_that_were_asked_for(served_checkpoint: Checkpoint, tokens: int) -> None:
    (ids,) = served_checkpoint.own_ids([text_of(served_checkpoint, tokens)])
    assert len(served_checkpoint.with_special_tokens(ids)) == tokens


@pytest.mark.parametrize("of", [WORDS, SHORT_WORDS])
def test_a_text_is_the_one_that_grows_word_by_word(
    served_checkpoint: Checkpoint, of: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is found without tokenising each of them, which took most of the time of a comparison."""

    def length(words: list[str]) -> int:
        return len(served_checkpoint.with_special_tokens(served_checkpoint.own_ids([" ".join(words)])[0]))

    all_words = [f"{of[n % 10]} {n}." if n % 7 == 6 else of[n % 10] for n in range(150)]
    lengths = [length(all_words[:n]) for n in range(150)]

    def grown(tokens: int) -> str:
        words = all_words[: max(n for n in range(150) if lengths[n] <= tokens)]
        for filler in FILLERS:
            while length([*words, filler]) <= tokens:
                words.append(filler)
        return " ".join(words)

    expected = {tokens: grown(tokens) for tokens in (2, 3, 9, 10, 11, 24, 63, 127, 128, 129)}
    own_ids, asked = type(served_checkpoint).own_ids, []
    monkeypatch.setattr(
        type(served_checkpoint), "own_ids", lambda self, texts: asked.append(texts) or own_ids(self, texts)
    )
    known: dict[int, int] = {}
    assert {tokens: text_of(served_checkpoint, tokens, of, known) for tokens in expected} == expected
    assert len(asked) <= 8 * len(expected)
    assert {tokens: text_of(served_checkpoint, tokens, of) for tokens in expected} == expected


def test_the_declared_way_gives_the_encoders_vectors(served_checkpoint: Checkpoint) -> None:
    texts = ["the old town", "a", "", text_of(served_checkpoint, 200)]
    reading = declared(served_checkpoint)
    maker = Maker(served_checkpoint, served_checkpoint.dimension)
    windows = reading.windows(texts)
    maker.pool([(reading, windows)])
    made = maker.vectors(reading, PoolingVariant(DECLARED), windows)
    assert made is not None
    np.testing.assert_allclose(made, Encoder(served_checkpoint).encode_texts(texts), atol=1e-6)


def test_a_text_without_tokens_has_no_vector_and_stops_nothing(served_checkpoint: Checkpoint) -> None:
    (bare,) = (one for one in alternatives(declared(served_checkpoint)) if one.said == ("adds no special tokens",))
    assert bare.windows([""]) == [[]]
    maker = Maker(served_checkpoint, served_checkpoint.dimension)
    windows = bare.windows(["", "town"])
    maker.pool([(bare, windows)])
    made = maker.vectors(bare, PoolingVariant(DECLARED), windows)
    assert made is not None
    assert np.isnan(made[0]).all()
    assert np.isfinite(made[1]).all()


@given(VECTORS, VECTORS)
def test_apart_is_one_minus_cosine(first: list[list[float]], second: list[list[float]]) -> None:
    count = min(len(first), len(second))
    one, two = np.array(first[:count]), np.array(second[:count])
    for got, a, b in zip(apart(one, two), one, two, strict=True):
        lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
        if np.linalg.norm(a) < 1e-20 or np.linalg.norm(b) < 1e-20:
            assert np.isnan(got) or lengths > 0
        else:
            assert got == pytest.approx(1 - float(a @ b) / lengths, abs=1e-9)


def test_lengths_are_compared_beside_directions() -> None:
    ours = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    found = compare_kind("a", ["x", "y", "z"], ours, ours * [[10], [1], [1]], {})
    assert found.worst == 0
    assert found.ratios[:2].tolist() == [10.0, 1.0]
    assert np.isnan(found.ratios[2])
    assert found.worst_text in ("x", "y")


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda rows: rows, ""),
        (lambda rows: np.round(rows * 127), "int8"),
        (lambda rows: np.where(rows > 0, 1.0, -1.0), "signs"),
        (lambda rows: (rows > 0).astype(float), "bits (binary"),
        (lambda rows: np.packbits(rows > 0, axis=1).astype(float), "packed"),
        (lambda rows: np.packbits(rows > 0, axis=1).astype(np.int8).astype(float), "packed into bytes (ubinary"),
        # As sentence-transformers' quantize_embeddings does.
        (lambda rows: np.packbits(rows > 0, axis=1).astype(float) - 128, "minus 128"),
    ],
)
def test_the_form_of_numbers_is_recognised_and_explained(
    served_checkpoint: Checkpoint, write: object, said: str
) -> None:
    texts = {"plain": ["the old town", "a river", "seven stars"], "one": ["iron"]}
    encoder = Encoder(served_checkpoint)
    theirs = {kind: write(encoder.encode_texts(some).astype(float)) for kind, some in texts.items()}  # type: ignore[operator]
    assert any(said in form.said for form in forms_of(theirs, served_checkpoint.dimension))
    found = explain(served_checkpoint, texts, theirs)
    assert found.is_complete
    assert [said in sentence for sentence in found.sentences] == ([True] if said else [])


def test_nothing_is_explained_where_there_is_no_vector(served_checkpoint: Checkpoint) -> None:
    found = explain(served_checkpoint, {"plain": ["the old town"]}, {"plain": np.full((1, 7), np.nan)})
    assert found.sentences == ()


@pytest.mark.slow
@pytest.mark.parametrize("keeps_end", [True, False])
def test_of_cuts_at_one_place_the_one_that_leaves_least_is_told(minilm: Checkpoint, keeps_end: bool) -> None:
    """Of a long text, the lost end token moves the vector by less than counts; transformers.js cuts it."""
    texts = {kind: some for kind, some in texts_by_kind(minilm).items() if kind in ("plain", "beyond the limit")}

    def cut(ids: list[int]) -> list[int]:
        return [*ids[:511], ids[-1]] if keeps_end and len(ids) > 512 else ids[:512]

    theirs = {
        kind: Encoder(minilm).encode_ids([cut(minilm.with_special_tokens(ids)) for ids in minilm.own_ids(list(some))])
        for kind, some in texts.items()
    }
    told = explain(minilm, texts, theirs)
    end = "reads 512 tokens" if keeps_end else "cuts after 512 tokens, and so the end token of longer texts"
    assert told.sentences == (end,)
    assert told.worst < 1e-9
