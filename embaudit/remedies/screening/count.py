"""Streams texts to token ids in batches, for counting severe tokens.

Token ids are cached by word: a few thousand words make up most texts.
Exact only for BERT-type tokenizers. These tokenise the pieces between spaces (U+0020) independently: cleaning, accents,
case and Chinese characters are handled character by character, and the pre-tokenizer splits at all whitespace. Others
(byte-level BPE, SentencePiece) make the space part of the following token.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase

MAX_WORDS = 200_000
# Longer words are URLs and noise, which rarely recur.
MAX_LENGTH = 30


def splits_at_spaces(backend: Tokenizer) -> bool:
    """Whether a text's ids are the concatenated ids of its words."""
    said: dict[str, Any] = json.loads(backend.to_str())
    normalizer = said["normalizer"] or {}
    # do_lower_case of sentence-transformers adds a normalizer before the declared one.
    steps = normalizer.get("normalizers", [normalizer])
    return (
        (said["pre_tokenizer"] or {}).get("type") == "BertPreTokenizer"
        and {step.get("type") for step in steps} <= {"Lowercase", "BertNormalizer"}
        and not any(" " in added["content"] for added in said["added_tokens"])
    )


class WordEncoder:
    """Texts to token ids, encoding each cached word once.

    Args:
        encode: a tokenizer for which ``splits_at_spaces`` holds.
    """

    def __init__(self, encode: Callable[[list[str]], list[list[int]]]) -> None:
        self._encode = encode
        self._known: dict[str, list[int]] = {}

    def __call__(self, texts: list[str]) -> list[list[int]]:
        split = [text.split(" ") for text in texts]
        if len(self._known) > MAX_WORDS:
            self._known.clear()
        # Pass the dict, not its keys view: set.difference iterates over the latter.
        new = list(set().union(*split).difference(self._known))
        found = dict(zip(new, self._encode(new), strict=True)) if new else {}
        self._known.update(found)
        ids = self._known.__getitem__
        encoded = [list(chain.from_iterable(map(ids, row))) for row in split]
        for word in found:
            if len(word) > MAX_LENGTH:
                del self._known[word]
        return encoded


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
