"""Other ways to ask the same: its last line alone, case, punctuation, typos mended, prompts left out."""

from __future__ import annotations

import difflib
import re
from collections.abc import Set
from typing import NamedTuple

import numpy as np

from embaudit.checkpoint import TextKind
from embaudit.embedders.function import EmbeddingFunction
from embaudit.measures.quality.measured import words_of

# A word that a typo was made of is so alike.
ALIKE = 0.8
SHORTEST = 4
# Words of a query that may have a beginning which is not what is asked.
LONG = 40
SHORT_LINE = 4
SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")
LAST_LINE, LAST_BUT_ONE, LAST_SENTENCE, LAST_QUESTION = (
    "by its last line alone",
    "by its last line but one alone",
    "by its last sentence alone",
    "by its last question alone",
)
ENDS = (LAST_LINE, LAST_BUT_ONE, LAST_SENTENCE, LAST_QUESTION)
# How a query without its typos is said to be asked.
AS_MENDED = "as '"


class OtherQuery(NamedTuple):
    """A way to ask: as the end of "asked …", the text, and its role."""

    said: str
    text: str
    role: TextKind


def other_queries(function: EmbeddingFunction, query: str, vocabulary: Set[str]) -> list[OtherQuery]:
    """Those that differ from the query."""
    found = [
        OtherQuery("in lower case", query.lower(), "query"),
        OtherQuery("without punctuation", " ".join(re.sub(r"[^\w\s]", " ", query).split()), "query"),
    ]
    found += [OtherQuery(said, text, "query") for said, text in ends_of(query).items()]
    if (mended := without_typos(query, vocabulary)) is not None:
        found.append(OtherQuery(f"{AS_MENDED}{mended}'", mended, "query"))
    # Many ask for a text as they ask for a document: once is enough.
    ways = {function.alike("document"): "as a document", "text": "without the query's prompt"}
    if function.alike("document") == "text":
        ways["text"] = "as a document"
    found += [OtherQuery(said, query, role) for role, said in ways.items() if role != function.alike("query")]
    return [one for one in found if (one.text != query or one.role != "query") and one.text]


def ends_of(query: str) -> dict[str, str]:
    """The last of several lines, sentences or questions: of a history, that is what is asked."""
    lines = [line.strip() for line in query.splitlines() if line.strip()]
    found = {LAST_LINE: lines[-1]} if len(lines) > 1 else {}
    # "Thanks!"
    if len(lines) > 2 and len(lines[-1].split()) < SHORT_LINE:
        found[LAST_BUT_ONE] = lines[-2]
    if len(query.split()) >= LONG:
        sentences = [one.strip() for one in SENTENCE_END.split(query) if one.strip()]
        questions = [one for one in sentences if one.endswith(("?", "？"))]
        for said, ends in ((LAST_SENTENCE, sentences), (LAST_QUESTION, questions)):
            if len(sentences) > 1 and ends and ends[-1] not in found.values():
                found[said] = ends[-1]
    return found


def without_typos(query: str, vocabulary: Set[str]) -> str | None:
    """The query with each unknown word as the most alike of the store's; None if there is none."""
    mended = query
    for word in words_of(query):
        if len(word) < SHORTEST or word in vocabulary or not word.isalpha():
            continue
        known = [one for one in vocabulary if abs(len(one) - len(word)) <= 2 and one[:1] == word[:1] and one.isalpha()]
        near = difflib.get_close_matches(word, known, n=1, cutoff=ALIKE)
        if near:
            mended = re.sub(rf"\b{re.escape(word)}\b", near[0], mended, flags=re.IGNORECASE)
    return mended if mended != query else None


def encoded(function: EmbeddingFunction, asked: list[OtherQuery]) -> np.ndarray:
    """(n, D) vectors; NaN where there is none."""
    rows: dict[int, np.ndarray] = {}
    for role in dict.fromkeys(one.role for one in asked):
        places = [place for place, one in enumerate(asked) if one.role == role]
        vectors = function.encode([asked[place].text for place in places], role).vectors
        rows |= dict(zip(places, vectors, strict=True))
    return np.array([rows[place] for place in range(len(asked))], dtype=np.float32)
