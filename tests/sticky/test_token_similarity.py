"""u three ways, and that no sequence of ids is encoded twice for it."""

from __future__ import annotations

import numpy as np
import pytest

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.measures.sticky.baseline import input_embeddings, mean_pairwise_cosine, token_similarity

pytestmark = pytest.mark.usefixtures("one_thread")


def strings(checkpoint: Checkpoint, *, pieces: bool) -> list[str]:
    """Words and punctuation, which come back as their own id; or ``##`` pieces, which come back as several."""
    vocabulary = checkpoint.tokenizer.convert_ids_to_tokens(list(range(checkpoint.vocabulary_size)))
    return [token for token in vocabulary if token.startswith("##") == pieces and not token.startswith("[")]


def each_by_itself(checkpoint: Checkpoint, tokens: list[str]) -> tuple[float, float, float]:
    """The definition: every entry's string as text, then every id, then rows of the embedding matrix."""
    encoder = Encoder(checkpoint)
    ids = checkpoint.tokenizer.convert_tokens_to_ids(tokens)
    as_text = np.concatenate([encoder.encode_texts([token]) for token in tokens])
    as_ids = np.concatenate([encoder.encode_ids([checkpoint.with_special_tokens([one])]) for one in ids])
    return (
        mean_pairwise_cosine(as_text),
        mean_pairwise_cosine(as_ids),
        mean_pairwise_cosine(input_embeddings(encoder)[ids]),
    )


def check(checkpoint: Checkpoint, tokens: list[str]) -> int:
    """Hold the figures against the definition; returns how many sequences were encoded."""
    encoder, told = Encoder(checkpoint), []
    similarity = token_similarity(encoder, checkpoint.tokenizer.convert_tokens_to_ids(tokens), tokens, told.append)
    found = (similarity.u, similarity.u_ids, similarity.u_input_embeddings)
    assert found == pytest.approx(each_by_itself(checkpoint, tokens), abs=1e-6)
    assert similarity.tokens == len(tokens)
    assert sum(told) == 2 * len(tokens), "a bar that counts both ways must arrive"
    return encoder.texts


def test_a_string_that_comes_back_as_its_id_is_encoded_once(tiny: Checkpoint) -> None:
    words = strings(tiny, pieces=False)
    assert check(tiny, words) == len(words)


def test_a_string_that_comes_back_as_other_ids_is_encoded_both_ways(tiny: Checkpoint) -> None:
    pieces = strings(tiny, pieces=True)
    assert check(tiny, pieces) == 2 * len(pieces)


def test_a_whole_vocabulary_takes_an_encode_for_each_distinct_sequence(tiny: Checkpoint) -> None:
    everything = tiny.tokenizer.convert_ids_to_tokens(list(range(tiny.vocabulary_size)))
    as_text = {tuple(tiny.tokenizer(token)["input_ids"]) for token in everything}
    as_ids = {tuple(tiny.with_special_tokens([token_id])) for token_id in range(tiny.vocabulary_size)}
    assert check(tiny, everything) == len(as_text | as_ids) < 2 * len(everything)


def test_strings_that_are_read_alike_share_one_encode(tiny: Checkpoint) -> None:
    encoder = Encoder(tiny)
    unknown = ["龸", "龹", "[UNK]"]
    ids = tiny.tokenizer.convert_tokens_to_ids(["river", "town", "[UNK]"])
    similarity = token_similarity(encoder, ids, unknown)
    assert similarity.u == pytest.approx(1, abs=1e-6)
    assert similarity.u_ids < 1 - 1e-3
    assert encoder.texts == 3
