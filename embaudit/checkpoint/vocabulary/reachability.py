"""Finds a text that produces a vocabulary id, to show that the id is reachable.

Used by ``embaudit.checkpoint.vocabulary`` for ids that do not survive a round trip of decoding and encoding
alone. The text "##ing" never produces WordPiece's ``##ing``, but a word ending in "ing" does; CLIP's ``worl`` needs a
word that continues; a byte of a UTF-8 sequence needs a whole character.

An id that none of these texts produces is called unreachable. This is a search, not a proof; but the texts are chosen
so that nothing merges across the boundary (a Latin piece after a Cyrillic letter), and in the real vocabularies of the
tests every remaining id has a reason: normalisation, pre-tokenisation, a better split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

Encode = Callable[[list[str]], list[list[int]]]

# Contexts before and after the piece. Letters of several scripts: vocabularies rarely have entries that mix scripts, so
# the piece is not merged with a letter of another script.
CONTEXTS: tuple[tuple[str, str], ...] = (
    ("", ""),
    (" ", ""),
    ("the ", ""),
    ("the", ""),
    ("я", ""),
    ("", "я"),
    ("ა", ""),
    ("x", ""),
    ("ω", ""),
    ("ا", ""),
    ("0", ""),
    (".", ""),
    ("の", ""),
    ("한", ""),
    ("日", ""),
    ("", "a"),
    (" ", "я"),
    (" ", "x"),
    ("", "."),
    ("", "!?"),
    ("", "∆"),
    ("", "0"),
    ("", " the"),
    ("я", "я"),
    ("x", "x"),
    (".", "."),
    ("'", ""),
    ("un", "s"),
    ("\n", "\n"),
)
# Contexts of a character that completes some bytes: alone, after a space, next to letters or punctuation.
_BYTE_CONTEXTS: tuple[tuple[str, str], ...] = (
    ("", ""),
    (" ", ""),
    ("", "я"),
    ("я", ""),
    ("", "!"),
    ("!", ""),
)
# Most bytes are produced by one of a few characters; the rest get more tries.
_COMPLETIONS = (24, 400)
_PER_SIDE = 40

_Item = TypeVar("_Item")

_LEADS = {2: range(0xC2, 0xE0), 3: range(0xE0, 0xF0), 4: range(0xF0, 0xF5)}
_CONTINUATIONS = range(0x80, 0xC0)


@dataclass(frozen=True)
class Target:
    """An id to reach: its bare text, and its bytes if they are not valid text."""

    surface: str
    raw: bytes | None = None


def texts_reaching(targets: Mapping[int, Target], encode: Encode, letters: Iterable[str] = ()) -> dict[int, str]:
    """One text for each id that was reached; ids without one are left out.

    Args:
        targets: the ids to reach.
        encode: texts to ids, without special tokens.
        letters: further context letters that the vocabulary knows: in a small or single-script vocabulary those of
            ``CONTEXTS`` may all be unknown, and one unknown letter makes a whole WordPiece word unknown.

    Each context is tried for all ids still missing: most need one or two, and only unreachable ids go through all. An
    id also counts if it occurs in the encoding of another id's text.
    """
    found: dict[int, str] = {}
    for before, behind in (*CONTEXTS, *((letter, "") for letter in letters)):
        missing = [target for token_id, target in targets.items() if token_id not in found]
        _note(
            [f"{before}{target.surface}{behind}" for target in missing if target.surface],
            encode,
            targets,
            found,
        )
    for before, behind in _BYTE_CONTEXTS:
        for limit in _COMPLETIONS:
            raws = [t.raw for token_id, t in targets.items() if t.raw is not None and token_id not in found]
            completed = [f"{before}{text}{behind}" for raw in raws for text in completions(raw, limit)]
            _note(completed, encode, targets, found)
    return found


def _note(texts: list[str], encode: Encode, targets: Mapping[int, Target], found: dict[int, str]) -> None:
    for text, ids in zip(texts, encode(texts), strict=True):
        for token_id in ids:
            if token_id in targets:
                found.setdefault(token_id, text)


def completions(raw: bytes, limit: int) -> list[str]:
    """Texts whose UTF-8 contains these bytes: at most ``limit``, spread evenly over the candidates.

    A token of a byte-level vocabulary may begin inside one character and end inside another; the missing lead and
    continuation bytes are filled in on both sides.
    """
    heads, tails = list(_heads(raw)), list(_tails(raw))
    if len(heads) > 1 and len(tails) > 1:
        heads, tails = _thinned(heads, _PER_SIDE), _thinned(tails, _PER_SIDE)
    texts = []
    for head, tail in product(heads, tails):
        try:
            texts.append((head + raw + tail).decode())
        except UnicodeDecodeError:  # overlong forms, surrogates, a head and a tail that do not match
            continue
    return _thinned(texts, limit)


def _thinned(items: list[_Item], limit: int) -> list[_Item]:
    return items[:: max(1, -(-len(items) // limit))]


def _heads(raw: bytes) -> Iterator[bytes]:
    """Possible bytes before leading continuation bytes: a lead byte, possibly with continuation bytes."""
    leading = next((n for n, byte in enumerate(raw) if byte not in _CONTINUATIONS), len(raw))
    if not leading:
        yield b""
        return
    for length, leads in _LEADS.items():
        # Fewer than the missing bytes only if the token lies within one character: the tail then adds the rest.
        fewest = 1 if leading == len(raw) else length - leading
        for missing in range(max(fewest, 1), length - leading + 1):
            yield from _byte_strings(leads, missing - 1)


def _tails(raw: bytes) -> Iterator[bytes]:
    """Possible bytes after an incomplete last character: exactly the missing continuation bytes."""
    start = next((n for n in reversed(range(len(raw))) if raw[n] not in _CONTINUATIONS), None)
    if start is None:  # within one character: the number of missing bytes depends on the head
        yield b""
        longest = 3 - len(raw)
    else:
        length = next((length for length, leads in _LEADS.items() if raw[start] in leads), 1)
        longest = length - (len(raw) - start)
        if longest <= 0:
            yield b""
    for missing in range(1 if start is None else longest, longest + 1):
        if missing > 0:
            yield from _byte_strings(_CONTINUATIONS, missing - 1)


def _byte_strings(first: Iterable[int], more: int) -> Iterator[bytes]:
    # All 64 second bytes, but only every ninth third and fourth: enough to find a character that is not merged.
    steps = (_CONTINUATIONS[:: 1 if n == 0 else 9] for n in range(more))
    yield from map(bytes, product(first, *steps))
