"""The encoder: order, batches, padding, truncation, counts, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_models import FAMILIES, TEXTS, D, declare, dense, layer_norm, load, pooling

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.words.errors import MeasureError

Copy = Callable[..., Path]
# Shared fixtures are read only; a first example also pays for loading.
FEW = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
WORDS = ["the", "river", "gold", "KING", "zebra", "1923", "ship's", "—", "äöü", "moon"]
texts_of_words = st.lists(st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join), min_size=1, max_size=12)


def one_at_a_time(checkpoint: Checkpoint, texts: list[str]) -> np.ndarray:
    """Every text alone, hence without padding."""
    return np.concatenate([Encoder(checkpoint).encode_texts([text]) for text in texts])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("mode", ["mean", "cls", "lasttoken", "max", "weightedmean"])
def test_padding_changes_nothing(family: str, mode: str, plain: Copy) -> None:
    checkpoint = load(plain(family), pooling=mode)
    texts = [text for text in TEXTS if text or family != "qwen2"]
    batched = Encoder(checkpoint, tokens_per_batch=100_000).encode_texts(texts)
    alone = one_at_a_time(checkpoint, texts)
    # 1e-6 of a vector's length: it is unit vectors that the measures compare.
    lengths = np.linalg.norm(alone, axis=1, keepdims=True)
    np.testing.assert_allclose(batched / lengths, alone / lengths, atol=1e-6)


@FEW
@given(texts=texts_of_words, tokens_per_batch=st.integers(1, 400))
def test_any_batch_size_gives_the_same_vectors(
    texts: list[str], tokens_per_batch: int, loaded_bert: Checkpoint
) -> None:
    vectors = Encoder(loaded_bert, tokens_per_batch=tokens_per_batch).encode_texts(texts)
    np.testing.assert_allclose(vectors, one_at_a_time(loaded_bert, texts), atol=1e-6)


@FEW
@given(
    rows=st.lists(st.lists(st.integers(9, 200), min_size=3, max_size=3), min_size=1, max_size=20),
    tokens_per_batch=st.integers(1, 40),
)
def test_dense_and_ragged_encoding_agree(rows: list[list[int]], tokens_per_batch: int, loaded_bert: Checkpoint) -> None:
    import torch

    sequences = [loaded_bert.with_special_tokens(row) for row in rows]
    encoder = Encoder(loaded_bert, tokens_per_batch=tokens_per_batch)
    dense_vectors = encoder.encode_dense(torch.tensor(sequences)).numpy()
    assert dense_vectors.dtype == np.float32
    np.testing.assert_allclose(dense_vectors, Encoder(loaded_bert).encode_ids(sequences), atol=1e-6)


def test_vectors_are_float32_and_of_unit_length_where_declared(loaded_bert: Checkpoint) -> None:
    vectors = Encoder(loaded_bert).encode_texts(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), loaded_bert.dimension)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


@contextmanager
def batches_of(checkpoint: Checkpoint) -> Iterator[list[tuple[int, int]]]:
    """The shape of whatever its model is run on meanwhile."""
    shapes: list[tuple[int, int]] = []
    hook = checkpoint.model.register_forward_pre_hook(
        lambda _module, _args, kwargs: shapes.append(tuple(kwargs["input_ids"].shape)), with_kwargs=True
    )
    yield shapes
    hook.remove()


@pytest.mark.parametrize("budget", [1, 30, 64, 200, 10_000])
def test_the_token_budget_is_respected(budget: int, loaded_bert: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    with batches_of(loaded_bert) as shapes:
        Encoder(loaded_bert, tokens_per_batch=budget).encode_texts(TEXTS * 5)
    assert sum(rows for rows, _ in shapes) == len(TEXTS) * 5
    # A text that is longer than the budget runs alone.
    assert all(rows * width <= budget or rows == 1 for rows, width in shapes)
    # Sorted by length: short texts are not padded to the longest one.
    assert [width for _, width in shapes] == sorted(width for _, width in shapes)
    if budget == 10_000:
        assert len(shapes) == 1


def test_dense_encoding_respects_the_budget_too(loaded_bert: Checkpoint) -> None:
    import torch

    with batches_of(loaded_bert) as shapes:
        Encoder(loaded_bert, tokens_per_batch=24).encode_dense(torch.full((10, 8), 20))
    assert shapes == [(3, 8), (3, 8), (3, 8), (1, 8)]


def test_token_embeddings_are_the_models_own(loaded_bert: Checkpoint) -> None:
    import torch

    encoder = Encoder(loaded_bert, tokens_per_batch=50)
    found = dict(encoder.token_embeddings(TEXTS))
    assert sorted(found) == list(range(len(TEXTS)))
    lengths = [len(X) for X in found.values()]
    assert lengths == sorted(lengths)
    for index, text in enumerate(TEXTS):
        ids = torch.tensor(encoder.tokenize([text]))
        with torch.inference_mode():
            alone = loaded_bert.model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[0]
        assert found[index].shape == (ids.shape[1], D)
        assert found[index].dtype == np.float32
        np.testing.assert_allclose(found[index], alone.numpy(), atol=1e-6 * float(alone.abs().max()))


def test_the_mean_of_the_token_embeddings_is_the_vector(loaded_bert: Checkpoint) -> None:
    encoder = Encoder(loaded_bert)
    vectors = encoder.encode_texts(TEXTS)
    for index, X in encoder.token_embeddings(TEXTS):
        mean = X.mean(axis=0)
        np.testing.assert_allclose(vectors[index], mean / np.linalg.norm(mean), atol=1e-6)


def test_nothing_to_encode(loaded_bert: Checkpoint) -> None:
    import torch

    encoder = Encoder(loaded_bert)
    assert encoder.tokenize([]) == []
    for vectors in (encoder.encode_texts([]), encoder.encode_ids([])):
        assert vectors.shape == (0, loaded_bert.dimension)
        assert vectors.dtype == np.float32
    assert encoder.encode_dense(torch.empty((0, 5), dtype=torch.int64)).shape == (0, loaded_bert.dimension)
    assert list(encoder.token_embeddings([])) == []
    assert (encoder.texts, encoder.tokens) == (0, 0)


def test_an_empty_text_is_its_special_tokens(loaded_bert: Checkpoint) -> None:
    encoder = Encoder(loaded_bert)
    assert encoder.tokenize([""]) == [[*loaded_bert.prefix_ids, *loaded_bert.suffix_ids]]
    assert encoder.encode_texts(["", "   "]).shape == (2, D)


def test_a_text_without_a_single_token_is_named(plain: Copy) -> None:
    import torch

    encoder = Encoder(load(plain("qwen2")))
    with pytest.raises(MeasureError, match="Text 1 has no tokens") as caught:
        encoder.encode_texts(["gold", "", "iron"])
    assert "blank" in caught.value.next_step
    with pytest.raises(MeasureError, match="no tokens"):
        list(encoder.token_embeddings([""]))
    with pytest.raises(MeasureError, match="no tokens"):
        encoder.encode_dense(torch.empty((2, 0), dtype=torch.int64))


def test_texts_over_the_limit_are_cut(loaded_bert: Checkpoint) -> None:
    encoder = Encoder(loaded_bert)
    long = encoder.tokenize(["gold " * 300])[0]
    assert len(long) == loaded_bert.max_length == 64
    assert (long[0], long[-1]) == (loaded_bert.prefix_ids[0], loaded_bert.suffix_ids[0])
    fits = "gold " * loaded_bert.content_limit
    vectors = encoder.encode_texts(["gold " * 300, fits])
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-6)


def test_counts_of_texts_and_tokens(loaded_bert: Checkpoint) -> None:
    import torch

    encoder = Encoder(loaded_bert, tokens_per_batch=50)
    lengths = [len(ids) for ids in encoder.tokenize(TEXTS)]
    assert encoder.texts == 0  # tokenizing costs no encode
    encoder.encode_texts(TEXTS)
    assert (encoder.texts, encoder.tokens) == (len(TEXTS), sum(lengths))  # padding does not count
    list(encoder.token_embeddings(TEXTS))
    assert (encoder.texts, encoder.tokens) == (2 * len(TEXTS), 2 * sum(lengths))
    encoder.encode_dense(torch.full((10, 8), 20))
    assert (encoder.texts, encoder.tokens) == (2 * len(TEXTS) + 10, 2 * sum(lengths) + 80)
    assert Encoder(loaded_bert).texts == 0


def test_progress_adds_up(loaded_bert: Checkpoint) -> None:
    steps: list[int] = []
    Encoder(loaded_bert, tokens_per_batch=60).encode_texts(TEXTS * 3, steps.append)
    assert sum(steps) == 3 * len(TEXTS)
    assert len(steps) > 2


@pytest.fixture
def overflowing(plain: Copy) -> Checkpoint:
    """Finite weights whose output overflows for the texts with the token "gold"."""
    import torch

    checkpoint = load(declare(plain(), pooling("mean"), layer_norm(), dense()))
    weight = checkpoint.model.get_input_embeddings().weight
    with torch.no_grad():
        weight[checkpoint.content_ids("gold")[0]] = 3e38
    return checkpoint


def test_a_vector_that_is_not_finite_is_named(overflowing: Checkpoint) -> None:
    import torch

    encoder = Encoder(overflowing)
    gold = overflowing.with_special_tokens(overflowing.content_ids("gold"))
    iron = overflowing.with_special_tokens(overflowing.content_ids("iron"))
    named = " ".join(map(str, gold))
    assert np.isfinite(encoder.encode_ids([iron])).all()
    with pytest.raises(MeasureError, match=f"token ids {named}\\.") as caught:
        encoder.encode_ids([iron, gold, iron])
    assert "--dtype float32" in caught.value.next_step
    with pytest.raises(MeasureError, match=f"token ids {named}\\."):
        encoder.encode_dense(torch.tensor([iron, gold]))
    with pytest.raises(MeasureError, match=f"token ids {named}\\."):
        list(encoder.token_embeddings(["iron", "gold"]))


def test_a_long_text_that_is_not_finite_is_named_by_its_beginning(overflowing: Checkpoint) -> None:
    with pytest.raises(MeasureError) as caught:
        Encoder(overflowing).encode_texts(["gold " * 40])
    assert caught.value.happened.endswith(" …")
    assert len(caught.value.happened) < 150


def test_an_id_that_no_model_knows(loaded_bert: Checkpoint) -> None:
    import torch

    beyond = loaded_bert.vocabulary_size
    with pytest.raises(MeasureError, match=f"token {beyond}"):
        Encoder(loaded_bert).encode_ids([[6, 20, 7], [6, beyond, 7]])
    with pytest.raises(MeasureError, match=f"token {beyond}"):
        Encoder(loaded_bert).encode_dense(torch.tensor([[6, beyond, 7]]))


def test_a_pad_token_without_an_embedding_still_pads(plain: Copy) -> None:
    checkpoint = load(plain("qwen2"))
    expected = Encoder(checkpoint).encode_texts(["gold", "the old river"])
    checkpoint.tokenizer.add_special_tokens({"pad_token": "<a-new-one>"})
    assert checkpoint.tokenizer.pad_token_id >= checkpoint.vocabulary_size
    np.testing.assert_allclose(Encoder(checkpoint).encode_texts(["gold", "the old river"]), expected, atol=1e-6)


def test_content_ids_are_cut_to_what_is_asked_for(loaded_bert: Checkpoint) -> None:
    ids = loaded_bert.content_ids("the old river of gold")
    assert loaded_bert.content_ids("the old river of gold", limit=2) == ids[:2]
    assert loaded_bert.content_ids("the old river of gold", limit=0) == []
    assert loaded_bert.content_ids("the old river of gold", limit=-3) == []
    assert len(loaded_bert.content_ids("gold " * 300)) == loaded_bert.content_limit


@pytest.mark.parametrize("special", ["[MASK]", "[PAD]", "[CLS]"])
def test_special_tokens_written_in_a_text_are_tokens_like_the_tokenizer_says(
    special: str, loaded_bert: Checkpoint
) -> None:
    text = f"the {special} river"
    assert Encoder(loaded_bert).tokenize([text]) == [loaded_bert.tokenizer(text)["input_ids"]]
    # Padding by hand must not confuse a [PAD] in a text with padding.
    batched = Encoder(loaded_bert).encode_texts([text, "gold " * 30])
    np.testing.assert_allclose(batched[0], Encoder(loaded_bert).encode_texts([text])[0], atol=1e-6)


def test_the_real_checkpoint_against_sentence_transformers(
    minilm: Checkpoint, reference: Callable[..., np.ndarray]
) -> None:
    np.testing.assert_allclose(
        Encoder(minilm, tokens_per_batch=300).encode_texts(TEXTS), reference(minilm.resolved.folder), atol=1e-5
    )
