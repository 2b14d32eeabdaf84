"""Token ids of vocabularies that are not the checkpoint's: what well-known clients send to any server.

LangChain's OpenAIEmbeddings cuts texts by tiktoken and sends the ids. A server of another model takes them for its own.
tiktoken downloads a vocabulary when it is first used; here it is used only if that has happened before.

What clients count texts in, and the pieces that they cut them into: each is encoded, and their vectors averaged.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.tokenizer import NO_LIMIT

if TYPE_CHECKING:
    from tiktoken import Encoding


# What is sent of a piece: text, or token ids; None if the server refuses it.
Content = str | tuple[int, ...] | None


@dataclass(frozen=True)
class Unit:
    """Characters, words, or the tokens of a vocabulary.

    Attributes:
        name: of several.
        split: a text's units.
        join: what is sent of some of them.
        gives_ids: whether that is token ids, which no tokenizer reads any more.
        is_bare: whether the server leaves such ids without special tokens.
    """

    name: str
    split: Callable[[str], Sequence[Any]]
    join: Callable[[Sequence[Any]], Content]
    gives_ids: bool = False
    is_bare: bool = False


CHARACTERS = Unit("characters", str, str)
WORDS = Unit("words", lambda text: text.split(" "), " ".join)


@dataclass(frozen=True)
class CutPieces:
    """How a client cuts a text.

    Attributes:
        size: units per piece.
        overlap: units that a piece shares with the one before.
        runs_on: whether pieces go on after one has reached the text's end: as many as there are steps.
        only_last: whether the vector of the last piece takes the place of all.
    """

    unit: Unit = CHARACTERS
    size: int = NO_LIMIT
    overlap: int = 0
    runs_on: bool = False
    only_last: bool = False

    @property
    def are_averaged(self) -> bool:
        return self.size < NO_LIMIT and not self.only_last

    def of(self, text: str) -> list[tuple[Content, int]]:
        """What is sent of each piece, and its units. An empty text is sent as it is."""
        units = self.unit.split(text)
        if not len(units):
            return [("", 1)]
        if len(units) <= self.size and not self.overlap:
            return [(self.unit.join(units), 1)]
        end = len(units) if self.runs_on else max(1, len(units) - self.overlap)
        pieces = [units[start : start + self.size] for start in range(0, end, self.size - self.overlap)]
        return [(self.unit.join(piece), len(piece)) for piece in (pieces[-1:] if self.only_last else pieces)]


WHOLE = CutPieces()


# tiktoken's encodings, of most clients first, with the sha256 of their files: it replaces a file that has another.
VOCABULARIES = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "p50k_base": "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
    "r50k_base": "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
}
ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
# What is done with ids beyond the vocabulary of a model of so many tokens, whose unknown token has an id: the id in its
# place, or None for none. Of all that fit alike, the first is said.
Beyond = Callable[[int, int, int | None], int | None]
BEYOND: dict[str, Beyond] = {
    "modulo its size": lambda token, size, unknown: token % size,
    "as its unknown token": lambda token, size, unknown: unknown,
    "left out": lambda token, size, unknown: None,
    "as its last token": lambda token, size, unknown: size - 1,
}


def usable() -> list[str]:
    """The vocabularies that can be used without a download, by name."""
    if find_spec("tiktoken") is None:
        return []
    from tiktoken import registry

    return [name for name in VOCABULARIES if name in registry.ENCODINGS or _is_cached(name)]


def untried() -> str:
    """Why clients that send token ids were not looked for, and what to type; empty if the usual ones were."""
    most = next(iter(VOCABULARIES))
    if most in usable():
        return ""
    fetch = f"python -c \"import tiktoken; tiktoken.get_encoding('{most}')\" fetches it"
    if find_spec("tiktoken") is None:
        return (
            "Token ids of a foreign vocabulary, which LangChain's OpenAIEmbeddings sends, were not tried: "
            f"pip install 'embaudit[tiktoken]'; then {fetch}."
        )
    return (
        "Token ids of a foreign vocabulary, which LangChain's OpenAIEmbeddings sends, were not tried: tiktoken's cache "
        f"(TIKTOKEN_CACHE_DIR) does not hold {most}: {fetch} (1.7 MB)."
    )


def _is_cached(name: str) -> bool:
    """Whether tiktoken's cache holds a vocabulary, whole."""
    asked = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    # An empty name is tiktoken's way to say: no cache.
    if asked == "":
        return False
    folder = Path(asked) if asked else Path(tempfile.gettempdir()) / "data-gym-cache"
    file = folder / hashlib.sha1(ADDRESS.format(name).encode(), usedforsecurity=False).hexdigest()
    try:
        return _sha256(file, file.stat().st_mtime_ns) == VOCABULARIES[name]
    except OSError:
        return False


@cache
def _sha256(file: Path, changed: int) -> str:
    """Of a file that was changed then: megabytes, asked for again and again."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def encoding(name: str) -> Encoding:
    import tiktoken

    return tiktoken.get_encoding(name)


def text_unit(name: str) -> Unit:
    """Tokens of a foreign vocabulary that are sent as text."""
    tokens = encoding(name)
    return Unit(f"tokens of {name}", tokens.encode_ordinary, lambda ids: tokens.decode(list(ids)))


def misread_units(checkpoint: Checkpoint) -> Iterator[tuple[str, Unit]]:
    """How a server of a checkpoint may take token ids of a foreign vocabulary, each as the end of "it …"."""
    for name in usable():
        tokens = encoding(name)
        for sentence, join, is_bare in _ways(checkpoint, name):
            # Decoded ids are text again, which the tokenizer reads.
            gives_ids = is_bare is not None
            yield sentence, Unit(f"tokens of {name}", tokens.encode_ordinary, join, gives_ids, bool(is_bare))


def _ways(
    checkpoint: Checkpoint, name: str
) -> Iterator[tuple[str, Callable[[Sequence[int]], str | tuple[int, ...] | None], bool | None]]:
    """How ids are taken, what is read of them, and whether without special tokens; None where they become text."""
    size, unknown = checkpoint.vocabulary_size, checkpoint.tokenizer.unk_token_id
    takes = f"takes token ids of {name} for its own"
    for is_bare in (True, False):
        how = f"{takes}, {'without' if is_bare else 'between its'} special tokens"

        def refused(ids: Sequence[int]) -> tuple[int, ...] | None:
            return tuple(ids) if max(ids) < size else None

        yield f"{how}, and refuses ids beyond its vocabulary", refused, is_bare
        for where, rule in BEYOND.items():
            if rule(size, size, unknown) is None and where != "left out":
                continue

            def read(ids: Sequence[int], rule: Beyond = rule) -> tuple[int, ...]:
                taken = (one if one < size else rule(one, size, unknown) for one in ids)
                return tuple(one for one in taken if one is not None)

            yield f"{how}, ids beyond its vocabulary {where}", read, is_bare
    for leaves_out, which in ((False, ""), (True, ", special tokens left out")):

        def decoded(ids: Sequence[int], leaves_out: bool = leaves_out) -> str:
            known = [one for one in ids if one < size]
            return str(checkpoint.tokenizer.decode(known, skip_special_tokens=leaves_out))

        yield f"decodes token ids of {name} by its own vocabulary{which}, and reads that as text", decoded, None
    yield f"reads the numbers of token ids of {name} as text", lambda ids: str(list(ids)), None
