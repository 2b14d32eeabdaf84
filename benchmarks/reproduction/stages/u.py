"""u of the whole vocabulary, three ways."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.reproduction import published
from benchmarks.reproduction.bench import Bench, only, rows_of
from benchmarks.reproduction.compared import Comparison, compared
from embaudit.measures.sticky.steps.sentences import read_tokens, token_similarity


def measure(bench: Bench) -> dict[str, Any]:
    run = bench.run()
    (tokens,) = run(read_tokens, bench.spec)
    similarity, _ = token_similarity(run, tokens, None)
    return only(rows_of([similarity], "token_similarity"))


def compare(found: dict[str, Any]) -> Iterator[Comparison]:
    yield compared("u, every entry's string encoded as text", published.U, found["u"], "C", 6)
    yield compared("the same of ids encoded as ids", None, found["u_ids"], digits=4)
    yield compared("the same of the input embeddings", None, found["u_input_embeddings"], digits=4)


def said(found: dict[str, Any]) -> str:
    return f"Over all {found['tokens']:,} entries, diagonal included, as published; there is nothing to sample."
