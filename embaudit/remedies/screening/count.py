"""Streams texts to token ids in batches, for counting severe tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from embaudit.remedies.screening.words import WordEncoder, splits_at_spaces

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Row = TypeVar("Row")
Encode = Callable[[list[str]], list[list[int]]]

# A batch ends at whichever limit comes first. Larger batches are slower (their encodings do not fit into the cache),
# and a batch of documents should not be larger than one of sentences.
TEXTS_PER_BATCH = 512
CHARACTERS_PER_BATCH = 262_144


def encoder_of_tokens(tokenizer: PreTrainedTokenizerBase) -> Encode:
    """A function from texts to token ids, without truncation or special tokens; a fast tokenizer uses all cores.

    Args:
        tokenizer: without truncation and padding, as when loaded with a checkpoint.
    """
    if tokenizer.is_fast:
        backend = tokenizer.backend_tokenizer

        def encode_fast(texts: list[str]) -> list[list[int]]:
            # The fast variant computes no offsets.
            return [found.ids for found in backend.encode_batch_fast(texts, add_special_tokens=False)]

        return WordEncoder(encode_fast) if splits_at_spaces(backend) else encode_fast

    def encode(texts: list[str]) -> list[list[int]]:
        ids: list[list[int]] = tokenizer(
            texts, add_special_tokens=False, truncation=False, padding=False, verbose=False
        )["input_ids"]
        return ids

    return encode


def tokenised(rows: Iterable[tuple[Row, str]], encode: Encode) -> Iterator[tuple[Row, str, list[int]]]:
    """Rows with their texts and token ids, in order; two batches are in memory.

    The next batch is tokenised while the caller processes the previous one.
    """
    with ThreadPoolExecutor(1) as pool:
        waiting: list[tuple[Row, str]] = []
        found = None
        for batch in in_batches(rows):
            ahead = pool.submit(encode, [text for _, text in batch])
            if found is not None:
                yield from _joined(waiting, found.result())
            waiting, found = batch, ahead
        if found is not None:
            yield from _joined(waiting, found.result())


def in_batches(rows: Iterable[tuple[Row, str]]) -> Iterator[list[tuple[Row, str]]]:
    """Batches within both limits; a single longer text forms its own batch."""
    batch: list[tuple[Row, str]] = []
    characters = 0
    for row in rows:
        size = len(row[1])
        if batch and (len(batch) == TEXTS_PER_BATCH or characters + size > CHARACTERS_PER_BATCH):
            yield batch
            batch, characters = [], 0
        batch.append(row)
        characters += size
    if batch:
        yield batch


def counts_of(ids: Sequence[int], wanted: Collection[int]) -> Counter[int]:
    """How often each of the wanted ids occurs in ``ids``."""
    return Counter(token_id for token_id in ids if token_id in wanted)


def _joined(batch: Sequence[tuple[Row, str]], encoded: Sequence[list[int]]) -> Iterator[tuple[Row, str, list[int]]]:
    return ((row, text, ids) for (row, text), ids in zip(batch, encoded, strict=True))
