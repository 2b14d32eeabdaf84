"""Clients that do what clients are reported to do wrong, each before or after a faithful function.

They are written with the encoder alone, not with what ``parity`` searches by.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder

if TYPE_CHECKING:
    from tiktoken import Encoding

Encode = Callable[[Sequence[str]], np.ndarray]
# What the server makes of one text's token ids.
OfIds = Callable[[list[int]], np.ndarray]
# A client of a server of the checkpoint, which has a foreign tokenizer.
Client = Callable[[Checkpoint, "Encoding"], Encode]


@dataclass(frozen=True)
class Faulty:
    """A client.

    Attributes:
        make: the client.
        called: what the report must call it; a regular expression.
        has_words: whether the checkpoint's tokenizer splits words and drops white space.
    """

    name: str
    make: Client
    called: str
    has_words: bool = False


def unit(row: np.ndarray) -> np.ndarray:
    return np.asarray(row / np.linalg.norm(row))


def faithful(checkpoint: Checkpoint) -> Encode:
    return lambda texts: np.asarray(Encoder(checkpoint).encode_texts(list(texts)), dtype=np.float64)


def of_text(change: Callable[[str], str]) -> Client:
    """Changes each text."""
    return lambda checkpoint, _: lambda texts: faithful(checkpoint)([change(text) for text in texts])


def of_pieces(
    cut: Callable[[str, Encoding], list[tuple[str, int]]], *, weighted: bool = True, normalised: bool = True
) -> Client:
    """Averages the vectors of pieces, with their lengths as weights or without."""

    def make(checkpoint: Checkpoint, tokens: Encoding) -> Encode:
        encode = faithful(checkpoint)

        def vector(text: str) -> np.ndarray:
            pieces, lengths = zip(*cut(text, tokens), strict=True)
            if len(pieces) == 1:
                return encode(pieces)[0]
            mean = np.average(encode(pieces), axis=0, weights=lengths if weighted else None)
            return unit(mean) if normalised else mean

        return lambda texts: np.array([vector(text) for text in texts])

    return make


def characters(size: int, overlap: int = 0) -> Callable[[str, Encoding], list[tuple[str, int]]]:
    def cut(text: str, _: Encoding) -> list[tuple[str, int]]:
        pieces = [text[start : start + size] for start in range(0, len(text), size - overlap)] or [""]
        return [(piece, len(piece) or 1) for piece in pieces]

    return cut


def to_the_end(size: int, overlap: int) -> Callable[[str, Encoding], list[tuple[str, int]]]:
    """As ``characters``, but no window begins where another has reached the end."""

    def cut(text: str, _: Encoding) -> list[tuple[str, int]]:
        starts = range(0, max(1, len(text) - overlap), size - overlap)
        return [(piece, len(piece) or 1) for piece in (text[start : start + size] for start in starts)]

    return cut


def foreign(size: int) -> Callable[[str, Encoding], list[tuple[str, int]]]:
    def cut(text: str, tokens: Encoding) -> list[tuple[str, int]]:
        ids = tokens.encode_ordinary(text)
        pieces = [ids[start : start + size] for start in range(0, len(ids), size)] or [[]]
        return [(tokens.decode(piece), len(piece) or 1) for piece in pieces]

    return cut


def sending_ids(server: Callable[[Checkpoint], OfIds], size: int = 8_191) -> Client:
    """As LangChain's OpenAIEmbeddings: token ids in windows, averaged by length; empty texts as they are."""

    def make(checkpoint: Checkpoint, tokens: Encoding) -> Encode:
        answer, encode = server(checkpoint), faithful(checkpoint)

        def vector(text: str) -> np.ndarray:
            ids = tokens.encode_ordinary(text)
            if not ids:
                return encode([""])[0]
            pieces = [ids[start : start + size] for start in range(0, len(ids), size)]
            rows = [answer(piece) for piece in pieces]
            return (
                rows[0] if len(rows) == 1 else unit(np.average(rows, axis=0, weights=[len(piece) for piece in pieces]))
            )

        return lambda texts: np.array([vector(text) for text in texts])

    return make


def of_ids(checkpoint: Checkpoint, ids: Sequence[int]) -> np.ndarray:
    """The vector of an id sequence; NaN if there is nothing in it, or an id that no token has."""
    if not ids or max(ids) >= checkpoint.vocabulary_size:
        return np.full(checkpoint.dimension, np.nan)
    return np.asarray(Encoder(checkpoint).encode_ids([list(ids)])[0], dtype=np.float64)


def bare(checkpoint: Checkpoint) -> OfIds:
    return lambda ids: of_ids(checkpoint, ids[: checkpoint.max_length])


def within_special_tokens(take: Callable[[int, Checkpoint], list[int]]) -> Callable[[Checkpoint], OfIds]:
    def server(checkpoint: Checkpoint) -> OfIds:
        def answer(ids: list[int]) -> np.ndarray:
            known = [taken for one in ids for taken in take(one, checkpoint)]
            return of_ids(checkpoint, checkpoint.with_special_tokens(known[: checkpoint.content_limit]))

        return answer

    return server


def unknown(one: int, checkpoint: Checkpoint) -> list[int]:
    return [one if one < checkpoint.vocabulary_size else checkpoint.tokenizer.unk_token_id]


def decoding(checkpoint: Checkpoint) -> OfIds:
    """As text-embeddings-inference: ids are decoded by the server's own vocabulary, and encoded again."""
    encode = faithful(checkpoint)

    def answer(ids: list[int]) -> np.ndarray:
        known = [one for one in ids if one < checkpoint.vocabulary_size]
        return encode([str(checkpoint.tokenizer.decode(known))])[0]

    return answer


def last_window(size: int) -> Callable[[str], str]:
    return lambda text: text[(max(len(text) - 1, 0) // size) * size :]


def first_tokens(size: int) -> Client:
    def make(checkpoint: Checkpoint, tokens: Encoding) -> Encode:
        encode = faithful(checkpoint)
        return lambda texts: encode([tokens.decode(tokens.encode_ordinary(text)[:size]) for text in texts])

    return make


def collapsed(text: str) -> str:
    return " ".join(text.split())


TAKES = "takes token ids of cl100k_base for its own, "
CLIENTS = (
    Faulty("ids, refused", sending_ids(bare), TAKES + "without special tokens, and refuses ids beyond"),
    Faulty(
        "ids, modulo",
        sending_ids(within_special_tokens(lambda one, c: [one % c.vocabulary_size])),
        TAKES + "between its special tokens, ids beyond its vocabulary modulo its size",
    ),
    Faulty("ids, unknown", sending_ids(within_special_tokens(unknown)), "beyond its vocabulary as its unknown token"),
    Faulty(
        "ids, left out",
        sending_ids(within_special_tokens(lambda one, c: [one] if one < c.vocabulary_size else [])),
        "beyond its vocabulary left out",
        has_words=True,
    ),
    Faulty("ids, decoded", sending_ids(decoding), "decodes token ids of cl100k_base by its own vocabulary"),
    Faulty(
        "ids, decoded in windows",
        sending_ids(decoding, 41),
        "decodes token ids of cl100k_base.*windows of 41 tokens of cl100k_base and averages.*by their length",
    ),
    Faulty(
        "ids, in windows",
        sending_ids(within_special_tokens(unknown), 41),
        TAKES + ".*windows of 41 tokens of cl100k_base and averages.*by their length",
        has_words=True,
    ),
    Faulty(
        "foreign windows", of_pieces(foreign(45)), "windows of 45 tokens of cl100k_base and averages.*by their length"
    ),
    Faulty("cut at foreign tokens", first_tokens(37), "reads 37 tokens of cl100k_base"),
    Faulty("newlines", of_text(lambda text: text.replace("\n", " ")), "replaces newlines by spaces"),
    Faulty("tabs", of_text(lambda text: text.replace("\t", " ")), "replaces tabs by spaces"),
    Faulty("white space", of_text(collapsed), "collapses white space;|collapses white space:"),
    Faulty("stripped", of_text(str.strip), "strips white space at the ends"),
    Faulty("lower-cased", of_text(str.lower), "lower-cases texts"),
    Faulty("cut at characters", of_text(lambda text: text[:137]), "reads 137 characters"),
    Faulty("cut at words", of_text(lambda text: " ".join(text.split(" ")[:23])), "reads 23 words", has_words=True),
    Faulty(
        "windows of characters",
        of_pieces(characters(143), weighted=False, normalised=False),
        "windows of 143 characters and averages their vectors; it does not normalise the averages",
    ),
    Faulty(
        "windows by length",
        of_pieces(characters(143)),
        "windows of 143 characters and averages their vectors; it weighs windows by their length:",
        has_words=True,
    ),
    Faulty("last window", of_text(last_window(150)), "windows of 150 characters and reads the last"),
    Faulty(
        "windows that overlap",
        of_pieces(characters(160, 30)),
        "windows of 160 characters that overlap by 30 and averages",
    ),
    Faulty(
        "windows that overlap to the end",
        of_pieces(to_the_end(150, 40), weighted=False),
        "windows of 150 characters that overlap by 40 and averages",
    ),
    Faulty(
        "header of a document",
        of_text(lambda text: f"<document_metadata>\nsourceDocument: \npublished: \n</document_metadata>\n\n{text}"),
        "sourceDocument: .* before texts",
    ),
    Faulty("header of fields", of_text(lambda text: f"title: None\n\n{text}"), r"puts 'title: None\\n\\n' before"),
    Faulty("missing title", of_text(lambda text: f"nan {text}"), "puts 'nan ' before", has_words=True),
    Faulty("role", of_text(lambda text: f"passage: {text}"), "puts 'passage: ' before", has_words=True),
    Faulty("JSON", of_text(json.dumps), "as JSON, quotes included", has_words=True),
    Faulty("escaped as JSON", of_text(lambda text: json.dumps(text)[1:-1]), "escapes texts as JSON"),
    Faulty("repr", of_text(repr), "Python's repr of texts"),
    Faulty("list of one", of_text(lambda text: str([text])), "repr of a list"),
    Faulty("mojibake", of_text(lambda text: text.encode().decode("latin-1")), "reads UTF-8 as Latin-1"),
    Faulty("NFKC", of_text(lambda text: unicodedata.normalize("NFKC", text)), "normalises Unicode to NFKC"),
    Faulty(
        "no emoji",
        of_text(lambda text: re.sub("[\U0001f000-\U0001ffff\u200d\ufe0f]", "", text)),
        "drops emoji|beyond U",
    ),
    Faulty("nothing", of_text(lambda text: text if text.strip() else "."), "reads '.' for texts with nothing"),
    Faulty("first character", of_text(lambda text: text[:1]), "reads the first character only", has_words=True),
)


def both(one: Callable[[str], str], two: Callable[[str], str]) -> Client:
    return of_text(lambda text: two(one(text)))


PAIRS = (
    Faulty(
        "newlines, cut at characters",
        both(lambda text: text.replace("\n", " "), lambda text: text[:101]),
        "replaces newlines by spaces; it reads 101 characters",
    ),
    Faulty(
        "lower-cased, header",
        both(str.lower, lambda text: f"title: None\n\n{text}"),
        r"(?=.*lower-cases texts)(?=.*puts 'title: None)",
    ),
    Faulty(
        "newlines, ids",
        lambda c, t: lambda texts: sending_ids(bare)(c, t)([text.replace("\n", " ") for text in texts]),
        "(?=.*replaces newlines by spaces)(?=.*takes token ids)",
    ),
    Faulty(
        "stripped, windows of characters",
        lambda c, t: lambda texts: of_pieces(characters(143))(c, t)([text.strip() for text in texts]),
        "(?=.*strips white space)(?=.*windows of 143 characters)",
    ),
)
