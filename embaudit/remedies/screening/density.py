"""The density of severe tokens in a text, and how unusual it is.

For a text of n tokens (without special tokens, the prompt, and anything beyond the length limit), k of them severe:

    score  Σ loss of its severe tokens / n: their share of the text, weighted by loss
    tail   P(X ≥ k), X binomial with n tokens at the rate of ordinary text; bounded from above by
           b(k) · (k + 1)(1 − p) / (k + 1 − (n + 1)p)   (Feller 1968, An Introduction to Probability Theory, VI.3)

A text is flagged if its tail, times the number of texts (Bonferroni), is at most ``FALSE_ALARMS``, if it has at least
``MIN_COPIES`` severe tokens (a single one hardly moves a text), and if its score reaches the caller's minimum. One file
of ordinary texts in a hundred then has a flagged text, provided that severe tokens occur independently.

Streams texts to token ids in batches, for counting severe tokens.

Token ids are cached by word: a few thousand words make up most texts.
Exact only for BERT-type tokenizers. These tokenise the pieces between spaces (U+0020) independently: cleaning, accents,
case and Chinese characters are handled character by character, and the pre-tokenizer splits at all whitespace. Others
(byte-level BPE, SentencePiece) make the space part of the following token.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from math import lgamma, log, log1p
from typing import TYPE_CHECKING, Any, TypeVar

from embaudit.statistics import exact_share

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase


FALSE_ALARMS = 0.01
MIN_COPIES = 2
# ⌈words/10⌉ copies of a token with loss .45 in 100 words have a score of .03, and cost retrieval four points
# (docs/methods.md).
MIN_SCORE = 0.01


@dataclass(frozen=True)
class OrdinaryRate:
    """The rate of severe tokens in ordinary text.

    Attributes:
        tokens: number of tokens in the ordinary texts.
        severe: number of severe ones among them.
    """

    tokens: int
    severe: int

    @property
    def most(self) -> float:
        """Upper end of the 95 % Clopper–Pearson interval, so that few ordinary texts do not cause false alarms."""
        return exact_share(self.severe, self.tokens)[1]


def score(counts: Mapping[int, int], losses: Mapping[int, float], read: int) -> float:
    """The share of ``read`` tokens that are severe, each weighted by its loss."""
    return sum(losses[token_id] * times for token_id, times in counts.items()) / read


def log_tail(k: int, n: int, rate: float) -> float:
    """Natural logarithm of an upper bound on the probability of k or more severe tokens among n; at most 0."""
    if k <= 0 or rate >= 1 or k + 1 <= (n + 1) * rate:
        return 0.0
    if rate <= 0:
        return float("-inf")
    binomial = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(rate) + (n - k) * log1p(-rate)
    return min(binomial + log((k + 1) * (1 - rate) / (k + 1 - (n + 1) * rate)), 0.0)


def is_unusual(log_of_tail: float, texts: int) -> bool:
    """Whether such a tail occurs by chance among this many ordinary texts in at most one file of a hundred."""
    return log_of_tail + log(texts) <= log(FALSE_ALARMS)


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
