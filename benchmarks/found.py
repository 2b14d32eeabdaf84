"""``embaudit search`` on a million rows, and ``embaudit why`` on a hundred thousand, start included."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.measured import Measured, sentences
from benchmarks.stored import CHECKPOINT, timed

MANY, FEWER, DIMENSION, CHUNK = 1_000_000, 100_000, 384, 100_000
LISTS, PROBED, WORDS = 1_024, 4, 150


def run() -> Iterator[Measured]:
    # Made in a process of its own: a child's peak begins with what its parent holds.
    with TemporaryDirectory() as folder, ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as made:
        index = made.submit(_lists, Path(folder) / "many.faiss").result()
        found, seconds, peak = timed("search", str(index))
        recall = found["search"]["recall_at_10"]["value"]
        yield Measured(
            f"`embaudit search` on {MANY:,} × {DIMENSION}, FAISS, IVF, {found['queries']['count']} queries (`found`)",
            f"{seconds:.0f} s, {peak:.1f} GiB; recall@10 {recall:.3f}",
            "≤ 60 s",
        )
        index.unlink()
        graph, texts, query, row = made.submit(_graph, Path(folder)).result()
        found, seconds, peak = timed(
            "why", str(graph), CHECKPOINT, "--texts", str(texts), "--query", query, "--expect", row
        )
        yield Measured(
            f"`embaudit why`, one case, {FEWER:,} × {DIMENSION}, FAISS, HNSW, texts of {WORDS} words (`found`)",
            f"{seconds:.0f} s, {peak:.1f} GiB; {found['cases'][0]['lost']}",
            "≤ 20 s",
        )


def _clustered(generator: np.random.Generator, centres: np.ndarray, count: int) -> np.ndarray:
    own = centres[generator.integers(0, len(centres), count)]
    own = own + 0.8 * generator.standard_normal((count, DIMENSION), dtype=np.float32)
    return np.asarray(own / np.linalg.norm(own, axis=1, keepdims=True), np.float32)


def _lists(file: Path) -> Path:
    import faiss

    generator = np.random.default_rng(0)
    centres = generator.standard_normal((2_000, DIMENSION), dtype=np.float32)
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(DIMENSION), DIMENSION, LISTS, faiss.METRIC_INNER_PRODUCT)
    index.train(_clustered(generator, centres, 40 * LISTS))
    for _ in range(0, MANY, CHUNK):
        index.add(_clustered(generator, centres, CHUNK))
    index.nprobe = PROBED
    faiss.write_index(index, str(file))
    return file


def _graph(folder: Path) -> tuple[Path, Path, str, str]:
    """A graph of which most rows are made up, and a thousand are the checkpoint's, those that are looked for first."""
    import faiss

    from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint

    generator = np.random.default_rng(0)
    words = [word for text in sentences(5_000)[0] for word in text.split()]
    starts = generator.integers(0, len(words) - WORDS, FEWER)
    texts = [" ".join(words[start : start + WORDS]) for start in starts]
    own = Encoder(load_checkpoint(CHECKPOINT, LoadOptions())).encode_texts(texts[:1_000])
    others = own[generator.integers(0, len(own), FEWER - len(own))]
    noise = 0.04 * generator.standard_normal(others.shape, dtype=np.float32)
    rows = np.concatenate([own, others + noise]).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    index = faiss.IndexHNSWFlat(DIMENSION, 16, faiss.METRIC_INNER_PRODUCT)
    index.add(rows)
    faiss.write_index(index, str(folder / "graph.faiss"))
    (folder / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    return folder / "graph.faiss", folder / "texts.jsonl", " ".join(texts[7].split()[:12]), "7"
