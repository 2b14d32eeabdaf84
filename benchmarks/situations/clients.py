"""Clients and caches: what a program does to texts and vectors on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.serving.faults import faithful
from benchmarks.serving.server import Encode
from benchmarks.situations.asking import check, parity, verify
from benchmarks.situations.networks import declared, good, load, network
from benchmarks.situations.situation import Situation
from embaudit.checkpoint import Checkpoint
from embaudit.questions.report import Report

# What families declare before queries and before documents.
E5 = ("query: ", "passage: ")
NOMIC = ("search_query: ", "search_document: ")
GEMMA = ("task: search result | query: ", "title: none | text: ")


@dataclass
class LangChain:
    """Puts something before queries and before documents.

    Attributes:
        vectors: of texts as they are.
    """

    vectors: Encode
    query: str = ""
    document: str = ""

    def rows(self, prompt: str, texts: list[str]) -> list[list[float]]:
        found: list[list[float]] = self.vectors([prompt + text for text in texts]).tolist()
        return found

    def embed_documents(self, texts: list[str]) -> list[Any]:
        return self.rows(self.document, texts)

    def embed_query(self, text: str) -> Any:
        return self.rows(self.query, [text])[0]


class LlamaIndex(LangChain):
    embed_documents = embed_query = None  # type: ignore[assignment]

    def get_text_embedding_batch(self, texts: list[str]) -> list[list[float]]:
        return self.rows(self.document, texts)

    def get_query_embedding(self, query: str) -> list[float]:
        return self.rows(self.query, [query])[0]


class Chroma(LangChain):
    embed_documents = None  # type: ignore[assignment]

    def __call__(self, input: list[str]) -> list[np.ndarray]:
        return [np.array(row) for row in self.rows(self.document, input)]

    def embed_query(self, input: list[str]) -> list[np.ndarray]:  # type: ignore[override]
        return [np.array(row) for row in self.rows(self.query, input)]


@dataclass
class Caching(LangChain):
    """Keeps vectors, by text and role or by text alone."""

    is_by_role: bool = True
    kept: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    def rows(self, prompt: str, texts: list[str]) -> list[list[float]]:
        keys = [(prompt if self.is_by_role else "", text) for text in texts]
        new = [text for key, text in zip(keys, texts, strict=True) if key not in self.kept]
        for text, row in zip(new, super().rows(prompt, new) if new else [], strict=True):
            self.kept[prompt if self.is_by_role else "", text] = row
        return [self.kept[key] for key in keys]


class NothingForEmpty(LangChain):
    def embed_documents(self, texts: list[str]) -> list[Any]:
        return [self.rows(self.document, [text])[0] if text.strip() else None for text in texts]


Ask = Callable[[Path, bool], Report]


def in_roles(
    form: type[LangChain],
    prompts: tuple[str, str],
    wrong: tuple[str, str],
    ask: Callable[[Checkpoint, Any], Report] = parity,
) -> Ask:
    """A client that puts what the checkpoint declares, or something else."""

    def made(folder: Path, is_broken: bool) -> Report:
        network(folder / "bare")
        bare = load(folder / "bare")
        declared(folder / "bare", prompts=dict(zip(("query", "document"), prompts, strict=True)))
        client = form(faithful(bare), *(wrong if is_broken else prompts))
        return ask(load(folder / "bare"), client)

    return made


def cached(folder: Path, is_broken: bool) -> Report:
    network(folder / "bare")
    bare = load(folder / "bare")
    declared(folder / "bare", prompts=dict(zip(("query", "document"), E5, strict=True)))
    return parity(load(folder / "bare"), Caching(faithful(bare), *E5, is_by_role=not is_broken))


def under_names(names: tuple[str, str], ask: Callable[[Checkpoint, Any], Report]) -> Ask:
    """A client that puts the checkpoint's prompts, which are declared under names that nothing picks, or as usual."""

    def made(folder: Path, is_broken: bool) -> Report:
        network(folder / "bare")
        bare = load(folder / "bare")
        chosen = names if is_broken else ("query", "document")
        declared(folder / "bare", prompts=dict(zip(chosen, NOMIC, strict=True)))
        return ask(load(folder / "bare"), LangChain(faithful(bare), *NOMIC))

    return made


def base64_as_text(folder: Path, is_broken: bool) -> Report:
    """A client that asks for base64 and takes what comes for a list: nothing in it is a number."""
    checkpoint = load(network(folder / "bare"))
    encode = faithful(checkpoint)
    return parity(checkpoint, (lambda texts: 0.0 * encode(texts)) if is_broken else encode)


def base64_as_bytes(folder: Path, is_broken: bool) -> Report:
    """A client that takes the bytes of float32 for a list of numbers."""
    checkpoint = load(network(folder / "bare"))
    encode = faithful(checkpoint)

    def as_bytes(texts: list[str]) -> np.ndarray:
        return np.array([np.frombuffer(row.astype("<f4").tobytes(), "u1") for row in encode(texts)], dtype=float)

    return parity(checkpoint, as_bytes if is_broken else encode)


def int8_by_batch(folder: Path, is_broken: bool) -> Report:
    """Whole numbers over the range of each batch, or over a range that stays."""
    encode = faithful(good())

    def whole(texts: list[str]) -> np.ndarray:
        rows = encode(texts)
        low, high = (
            (rows.min(0), rows.max(0)) if is_broken else (np.full(rows.shape[1], -0.3), np.full(rows.shape[1], 0.3))
        )
        steps = np.where(high > low, (high - low) / 255, 1.0)
        return np.clip(np.round((rows - low) / steps - 128 * (high > low)), -128, 127)

    return check(whole)


def unknown_words(folder: Path, is_broken: bool) -> Report:
    """A static model that knows a hundred words: zeros for texts without one, or a vector for every text."""
    checkpoint = good()
    words = checkpoint.model.get_input_embeddings().weight.detach().numpy()

    def static(texts: list[str]) -> np.ndarray:
        found = []
        for ids in checkpoint.own_ids([text or " " for text in texts]):
            kept = [one for one in ids if one < (2_100 if is_broken else len(words))]
            found.append(words[kept].mean(0) if kept else 0 * words[0] if is_broken else words[100])
        return np.array(found, dtype=float)

    return check(static)


def none_for_empty(folder: Path, is_broken: bool) -> Report:
    checkpoint = load(network(folder / "bare"))
    return parity(checkpoint, (NothingForEmpty if is_broken else LangChain)(faithful(checkpoint)))


CLIENTS = (
    Situation(
        "LangChain, E5's prompts: nothing before queries",
        "parity",
        in_roles(LangChain, E5, ("", E5[1])),
        r"Asked for queries, it leaves out the prompt 'query: '",
    ),
    Situation(
        "LlamaIndex, Nomic's prompts: nothing before documents",
        "parity",
        in_roles(LlamaIndex, NOMIC, (NOMIC[0], "")),
        r"It leaves out the prompt 'search_document: '",
    ),
    Situation(
        "Chroma, Gemma's prompts: the other way round",
        "parity",
        in_roles(Chroma, GEMMA, GEMMA[::-1]),
        r"puts 'task: search result \| query: ' before texts",
    ),
    Situation(
        "LangChain, E5's prompts: queries as documents",
        "verify",
        in_roles(LangChain, E5, (E5[1], E5[1]), verify),
        r"Only what is asked for as queries differs",
    ),
    Situation(
        "a cache that is keyed without the role",
        "parity",
        cached,
        r"gives the vector that the same text had before, asked for otherwise",
    ),
    Situation(
        "prompts under names that nothing picks",
        "parity",
        under_names(("search_query", "search_document"), parity),
        r"which the checkpoint declares as 'search_query'",
    ),
    Situation(
        "prompts under names that nothing picks",
        "verify",
        under_names(("query", "passage"), verify),
        r"which the checkpoint declares as 'passage'",
    ),
    Situation("base64 read as something else: zeros", "parity", base64_as_text, r"get a vector of zeros"),
    Situation("base64 read as a list of bytes", "parity", base64_as_bytes, r"bytes of float32"),
    Situation("int8 over the range of each batch", "check", int8_by_batch, r"its vector is zero"),
    Situation("a static model without most words", "check", unknown_words, r"its vector is zero"),
    Situation("None for an empty text", "parity", none_for_empty, r"it gives None"),
)
