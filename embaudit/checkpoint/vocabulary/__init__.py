"""A tokenizer's vocabulary: the category, reachability, origin and script of each entry, before any of them is scanned.

Categories are those of Step 1 of *Sticking to the Mean* (arXiv 2507.18171): decode the id, encode the text again, and
compare. Entries also have ``is_reachable`` (does any text produce the id), an origin and a script. The sticky scan
chooses its tokens from this list (``reference`` scans ok + special, ``definition`` every reachable or special one); the
warehouse stores it as the table ``token``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from embaudit.checkpoint.vocabulary.reachability import Encode, Target, texts_reaching
from embaudit.checkpoint.vocabulary.script import (
    COMMON,
    UNKNOWN,
    Origin,
    WordMarks,
    is_marker,
    origin_of,
    read_marks,
    script_of,
    token_bytes,
)
from embaudit.words.errors import CheckpointError, UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


Category = Literal[
    "ok",
    "special",
    "meaningless",
    "undecodable",
    "unreachable_special",
    "unreachable_single",
    "unreachable_multi",
]
CATEGORIES: tuple[str, ...] = get_args(Category)
# Increase this when categories or reachability change: it is part of the vocabulary's cache key.
MEASURE_VERSION = 2
Decode = Callable[[list[list[int]]], list[str]]

# Characters to prepend when decoding and encoding a SentencePiece token: rare ones are unlikely to merge with it.
ANCHORS = ("«", "§", "¶", "ж", "字", "z", "a")
REPLACEMENT = "\ufffd"
_CHUNK = 16_384
_LETTERS_PER_SCRIPT = 3

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """One id of the vocabulary.

    Attributes:
        token: as written in the vocabulary (``##ing``, ``▁the``, ``Ġthe``); empty for an id without a string.
        text: the decoded id; a leading space is kept if the vocabulary marks one.
        is_reachable: some text produces the id, or it is special and produced by its own string.
        origin: see ``embaudit.checkpoint.vocabulary.script.origin_of``.
        script: Unicode script; ``Common`` for digits, punctuation and markers, ``Unknown`` if undecodable.
    """

    token_id: int
    token: str
    text: str
    category: Category
    is_reachable: bool
    origin: Origin
    script: str


def read_vocabulary(tokenizer: PreTrainedTokenizerBase, vocabulary_size: int | None = None) -> list[TokenEntry]:
    """Every id from 0 to the size of the vocabulary, once and in order.

    Args:
        tokenizer: fast or slow; truncation and padding of a fast one are disabled temporarily.
        vocabulary_size: rows of the embedding matrix; by default the tokenizer's highest id + 1. Rows without a token
            string (padding of the matrix, gaps in the ids) are undecodable, unused and unreachable. Ids beyond the
            matrix have no embedding and are left out, with a warning; ``ids_without_row`` lists them.

    Raises:
        CheckpointError: the tokenizer has no tokens.
        UsageError: ``vocabulary_size`` is below 1.
    """
    tokens = _token_strings(tokenizer)
    if not tokens:
        raise CheckpointError("The tokenizer has an empty vocabulary.", next_step="Check the tokenizer files.")
    size = max(tokens) + 1 if vocabulary_size is None else vocabulary_size
    if size < 1:
        raise UsageError(f"A vocabulary of {size} rows has no token to read.", next_step="Give at least 1.")
    if beyond := ids_without_row(tokenizer, size):
        _log.warning(
            "Left out %d token ids from %d on: the embedding matrix has %d rows.",
            len(beyond),
            beyond[0],
            size,
        )
    specials = special_ids(tokenizer)
    ids = [token_id for token_id in sorted(tokens) if token_id < size]
    with _codec(tokenizer) as (encode, decode):
        marks = _marks(tokenizer, tokens, encode)
        texts, returned = _round_trip(ids, marks, specials, encode, decode)
        categories = {
            token_id: category_of(token_id, texts[token_id], returned[token_id], is_special=token_id in specials)
            for token_id in ids
        }
        doubtful = {
            token_id: _target(tokens[token_id], texts[token_id], marks, category)
            for token_id, category in categories.items()
            if category not in ("ok", "special") and token_id not in specials
        }
        words = [texts[token_id] for token_id, category in categories.items() if category == "ok"]
        reached = texts_reaching(doubtful, encode, _letters(words))
    return [
        _entry(
            token_id,
            tokens.get(token_id),
            texts.get(token_id, ""),
            categories.get(token_id, "undecodable"),
            marks,
            is_special=token_id in specials,
            is_reachable=token_id in categories and (token_id not in doubtful or token_id in reached),
        )
        for token_id in range(size)
    ]


def ids_without_row(tokenizer: PreTrainedTokenizerBase, vocabulary_size: int) -> list[int]:
    """The tokenizer's ids beyond an embedding matrix of this size: encoding them fails."""
    return sorted(token_id for token_id in _token_strings(tokenizer) if token_id >= vocabulary_size)


def special_ids(tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """The tokenizer's special tokens, cls included (which the published filter omits).

    Includes added tokens marked as special, since a bare ``tokenizer.json`` names no special tokens.
    """
    marked = (token_id for token_id, added in tokenizer.added_tokens_decoder.items() if added.special)
    return frozenset((*tokenizer.all_special_ids, *marked))


def category_of(token_id: int, text: str, returned: Sequence[int], *, is_special: bool) -> Category:
    """The published category: the first matching test on the decoded text and the ids that it encodes to.

    The order matters: GPT-2's token for U+FFFD itself survives the round trip and is ok; single bytes of a character do
    not. A text that the tokenizer normalises to nothing (no id) counts as ``unreachable_multi``.
    """
    if not text.strip():
        return "meaningless"
    if list(returned) == [token_id]:
        return "special" if is_special else "ok"
    if is_marker(text):
        return "unreachable_special"
    if REPLACEMENT in text:
        return "undecodable"
    return "unreachable_single" if len(returned) == 1 else "unreachable_multi"


def _token_strings(tokenizer: PreTrainedTokenizerBase) -> dict[int, str]:
    tokens = {token_id: token for token, token_id in tokenizer.get_vocab().items()}
    # An added token may replace a name in the base vocabulary ([unused5] renamed).
    return tokens | {token_id: added.content for token_id, added in tokenizer.added_tokens_decoder.items()}


@contextmanager
def _codec(tokenizer: PreTrainedTokenizerBase) -> Iterator[tuple[Encode, Decode]]:
    """Functions that encode and decode many texts, without special tokens, truncation, padding or clean-up."""
    if not tokenizer.is_fast:
        yield (
            lambda texts: [tokenizer.encode(text, add_special_tokens=False) for text in texts],
            lambda rows: [tokenizer.decode(ids, clean_up_tokenization_spaces=False) for ids in rows],
        )
        return
    backend = tokenizer.backend_tokenizer
    truncation, padding = backend.truncation, backend.padding

    def encode(texts: list[str]) -> list[list[int]]:
        chunks = (texts[start : start + _CHUNK] for start in range(0, len(texts), _CHUNK))
        return [
            encoding.ids for chunk in chunks for encoding in backend.encode_batch_fast(chunk, add_special_tokens=False)
        ]

    try:
        backend.no_truncation()
        backend.no_padding()
        yield encode, lambda rows: backend.decode_batch(rows, skip_special_tokens=False)
    finally:
        if truncation is not None:
            backend.enable_truncation(**truncation)
        if padding is not None:
            backend.enable_padding(**padding)


def _marks(tokenizer: PreTrainedTokenizerBase, tokens: dict[int, str], encode: Encode) -> WordMarks:
    two_words, accented = ([tokens.get(i, "") for i in ids] for ids in encode(["a a", "é"]))
    if not tokenizer.is_fast:
        is_wordpiece = any(token.startswith("##") and token[2:].isalpha() for token in tokens.values())
        return read_marks(two_words, accented, "##" if is_wordpiece else None)
    model = tokenizer.backend_tokenizer.model
    continuation = getattr(model, "continuing_subword_prefix", None)
    return read_marks(two_words, accented, continuation, getattr(model, "end_of_word_suffix", None))


def _round_trip(
    ids: list[int], marks: WordMarks, specials: frozenset[int], encode: Encode, decode: Decode
) -> tuple[dict[int, str], dict[int, list[int]]]:
    """Each id's text, and the ids that this text encodes to."""
    if marks.is_sentencepiece:
        # Without an anchor, the decoder drops a leading ▁ and the encoder adds one, which loses a third of T5's tokens.
        texts = _decode_behind_anchor(ids, encode, decode)
        return texts, _encode_behind_anchors(texts, specials, encode)
    decoded = decode([[token_id] for token_id in ids])
    if marks.end:
        # The byte-level decoder does not handle CLIP's </w>; transformers removes it in the same way.
        decoded = [text.replace(marks.end, " ").strip() for text in decoded]
    return dict(zip(ids, decoded, strict=True)), dict(zip(ids, encode(decoded), strict=True))


def _decode_behind_anchor(ids: list[int], encode: Encode, decode: Decode) -> dict[int, str]:
    heads = encode(list(ANCHORS))
    # The rarer characters may be missing from the vocabulary and decode to "<unk>".
    head = next((head for head, text in zip(heads, decode(heads), strict=True) if text.strip() in ANCHORS), [])
    start = len(decode([head])[0])
    decoded = decode([[*head, token_id] for token_id in ids])
    return {token_id: text[start:] for token_id, text in zip(ids, decoded, strict=True)}


def _encode_behind_anchors(texts: dict[int, str], specials: frozenset[int], encode: Encode) -> dict[int, list[int]]:
    """The ids after the anchor's own; if a text merges with one anchor, the next is tried.

    If the anchor's ids are intact, nothing merged across the boundary, and the rest is the text's own encoding.
    """
    heads = dict(zip(ANCHORS, encode(list(ANCHORS)), strict=True))
    # Anchors that are unknown to the vocabulary last: they would merge with an unknown text.
    anchors = sorted(ANCHORS, key=lambda anchor: bool(specials.intersection(heads[anchor])))
    returned: dict[int, list[int]] = {}
    for anchor in anchors:
        left = [token_id for token_id in texts if token_id not in returned]
        head = heads[anchor]
        rows = encode([f"{anchor}{texts[token_id]}" for token_id in left])
        for token_id, row in zip(left, rows, strict=True):
            if row[: len(head)] == head:
                returned[token_id] = row[len(head) :]
    left = [token_id for token_id in texts if token_id not in returned]
    return returned | dict(zip(left, encode([texts[token_id] for token_id in left]), strict=True))


def _letters(words: list[str]) -> list[str]:
    """A few letters of each script in the vocabulary, as further contexts for its pieces."""
    by_script: dict[str, list[str]] = {}
    for word in words:
        if len(word) == 1 and word.isalpha():
            by_script.setdefault(script_of(word), []).append(word)
    return [letter for letters in by_script.values() for letter in letters[:_LETTERS_PER_SCRIPT]]


def _target(token: str, text: str, marks: WordMarks, category: Category) -> Target:
    surface = marks.bare(text)
    raw = token_bytes(token, marks)
    if category == "undecodable":
        return Target("" if raw is not None else surface, raw)
    return Target(surface.strip(" ") or surface, raw)


def _entry(
    token_id: int,
    token: str | None,
    text: str,
    category: Category,
    marks: WordMarks,
    *,
    is_special: bool,
    is_reachable: bool,
) -> TokenEntry:
    is_dead_marker = category == "unreachable_special"
    origin = origin_of(token, text, marks, is_special=is_special, is_dead_marker=is_dead_marker)
    if category == "undecodable":
        script = UNKNOWN
    elif category == "meaningless" or origin in ("special", "unused"):
        script = COMMON  # a marker's name has Latin letters, but is not Latin text
    else:
        script = script_of(marks.bare(text))
    return TokenEntry(token_id, token or "", text, category, is_reachable, origin, script)
