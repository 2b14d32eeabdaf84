"""Stored vectors: what ``embaudit vectors`` finds in made-up indexes, its time, and how often its interval covers."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measured import Measured, sentences
from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.questions.vectors.profile import RowDraw
from embaudit.statistics import exact_count
from embaudit.stores.store import RowBatch

INDEXES, SAMPLED, SEEDS = 200, 1_000, 2
CASES = ((2_000, 0.003), (2_000, 0.03), (100_000, 0.001), (100_000, 0.03), (100_000, 0.4))
CHECKPOINT = "packaged:all-MiniLM-L6-v2"
ROWS, FOREIGN, PROMPT = 100_000, 3_000, "query: "
# Words of a text, so that encoding as many takes minutes.
WORDS = 6
MANY, DIMENSION, CHUNK = 1_000_000, 384, 50_000
LINKS, FOLDER_FILES = 1_000, 20


def run() -> Iterator[Measured]:
    yield from _coverage()
    with TemporaryDirectory() as folder:
        yield from _alone(Path(folder))
        yield from _mixed(Path(folder))


def _coverage() -> Iterator[Measured]:
    for rows, share in CASES:
        covered = [_covers(rows, round(rows * share), seed) for seed in range(INDEXES * SEEDS)]
        by_run = [float(np.mean(covered[start : start + INDEXES])) for start in range(0, len(covered), INDEXES)]
        yield Measured(
            f"the share of rows that a checkpoint did not build, {share:.1%} of {rows:,} rows, {SAMPLED:,} encoded: "
            f"how often its interval covers, {SEEDS} × {INDEXES} simulated indexes (`stored`)",
            f"{np.mean(covered):.3f} ({min(by_run):.3f} to {max(by_run):.3f} in one run)",
            "≥ 93 %",
        )


def _covers(rows: int, foreign: int, seed: int) -> bool:
    """Draw as the command does: from a stream of batches, in an order in which the foreign rows stand together."""
    draw = RowDraw(SAMPLED, seed)
    nothing = np.zeros((4_096, 1), dtype=np.float32)
    for start in range(0, rows, 4_096):
        part = nothing[: min(4_096, rows - start)]
        places = np.arange(len(part))
        draw.add(RowBatch(start, len(part), {1: (places, part)}), places, part)
    hits = int((draw.rows().numbers < foreign).sum())
    low, high = exact_count(hits, SAMPLED, rows)
    return low <= foreign <= high


def _mixed(folder: Path) -> Iterator[Measured]:
    """An index of which a part was encoded with a prompt: by a sample, and row by row."""
    texts = _texts()
    encoder = Encoder(load_checkpoint(CHECKPOINT, LoadOptions()))
    vectors = encoder.encode_texts(texts)
    foreign = np.random.default_rng(0).choice(len(texts), round(len(texts) * FOREIGN / ROWS), replace=False)
    vectors[foreign] = encoder.encode_texts([PROMPT + texts[place] for place in foreign])
    index = folder / "index.parquet"
    pq.write_table(pa.table({"text": texts, "embedding": list(vectors)}), index)
    found, seconds, _ = _vectors(CHECKPOINT, str(index))
    (share,) = (one for one in found["findings"] if one["name"] == "other_vectors")
    yield Measured(
        f"`vectors` on {len(texts):,} rows, {len(foreign) / len(texts):.1%} of them with a prompt, {SAMPLED:,} encoded "
        f"again: {share['value']:.2%} [{share['low']:.2%}, {share['high']:.2%}]",
        f"{seconds:.0f} s, start included; {'named' if PROMPT in share['sentence'] else 'not named'}",
        "≤ 40 s",
    )
    table = folder / "rows.parquet"
    _, seconds, _ = _vectors(CHECKPOINT, str(index), "--all", "--table", str(table), "--no-explanation")
    rows = set(pq.read_table(table, columns=["row"])["row"].to_pylist())
    wanted = {int(place) + 1 for place in foreign}
    yield Measured(
        "the same with `--all`: foreign rows listed; others listed",
        f"{len(rows & wanted):,} of {len(wanted):,}; {len(rows - wanted):,}; {seconds:.0f} s",
        "all; none",
    )


def _alone(folder: Path) -> Iterator[Measured]:
    # Made in processes of their own: a child's peak begins with what its parent holds.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as made:
        path = made.submit(_parquet, folder / "many.parquet").result()
        for kind, (keep, target) in STORES.items():
            place = path if keep is None else made.submit(keep, path, folder).result()
            _, seconds, peak = _vectors(str(place))
            yield Measured(
                f"`vectors` on {MANY:,} × {DIMENSION} alone, {kind} (`stored`)",
                f"{MANY / seconds:,.0f} rows a second, start included; {peak:.2f} GiB",
                target,
            )
            if place != path:
                shutil.rmtree(place) if place.is_dir() else place.unlink()
        path.unlink()
        many = made.submit(_folder, folder / "folder").result()
    found, seconds, peak = _vectors(str(many))
    yield Measured(
        f"`vectors` on {found['rows_of_the_store']:,} × {DIMENSION} alone, {LINKS:,} Parquet files, "
        f"{found['row_groups'][0]:,} of {found['row_groups'][1]:,} row groups drawn (`stored`; {FOLDER_FILES} files, "
        "each under fifty names)",
        f"{seconds:.0f} s, start included; {peak:.2f} GiB",
        "≤ 180 s, ≤ 1 GiB",
    )


def _folder(folder: Path) -> Path:
    """A hundred million rows in a thousand files, most of them other names of the same: their bytes fill a disk."""
    folder.mkdir()
    generator = np.random.default_rng(0)
    kind = pa.list_(pa.float32(), DIMENSION)
    for number in range(LINKS):
        path = folder / f"part-{number:04}.parquet"
        if number >= FOLDER_FILES:
            os.link(folder / f"part-{number % FOLDER_FILES:04}.parquet", path)
            continue
        rows = generator.standard_normal((ROWS, DIMENSION), dtype=np.float32)
        table = pa.table({"embedding": pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), type=kind)})
        pq.write_table(table, path, row_group_size=5_000, compression="none", use_dictionary=False)
    return folder


def _parquet(path: Path) -> Path:
    generator = np.random.default_rng(0)
    basis = generator.normal(size=(DIMENSION, DIMENSION)) * np.exp(-np.arange(DIMENSION) / 120)[:, None]
    schema = pa.schema([("text", pa.string()), ("embedding", pa.list_(pa.float32(), DIMENSION))])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, MANY, CHUNK):
            rows = (generator.normal(size=(CHUNK, DIMENSION)) @ basis).astype(np.float32)
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            names = [f"text {place}" for place in range(start, start + CHUNK)]
            column = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), DIMENSION)
            writer.write_table(pa.table({"text": names, "embedding": column}, schema=schema))
    return path


def _batches(parquet: Path) -> Iterator[tuple[list[str], np.ndarray]]:
    for batch in pq.ParquetFile(parquet).iter_batches(CHUNK):
        yield batch.column(0).to_pylist(), batch.column(1).flatten().to_numpy().reshape(-1, DIMENSION)


def _sqlite(parquet: Path, folder: Path) -> Path:
    with closing(sqlite3.connect(folder / "many.db")) as connection:
        connection.execute("CREATE TABLE docs (text TEXT, embedding BLOB)")
        for texts, rows in _batches(parquet):
            made = zip(texts, (row.tobytes() for row in rows), strict=True)
            connection.executemany("INSERT INTO docs VALUES (?, ?)", made)
        connection.commit()
    return folder / "many.db"


def _faiss(parquet: Path, folder: Path) -> Path:
    import faiss

    index = faiss.IndexFlatIP(DIMENSION)
    for _, rows in _batches(parquet):
        index.add(rows)
    faiss.write_index(index, str(folder / "many.faiss"))
    return folder / "many.faiss"


def _lancedb(parquet: Path, folder: Path) -> Path:
    import lancedb

    file = pq.ParquetFile(parquet)
    lancedb.connect(folder / "lance").create_table("docs", file.iter_batches(CHUNK), schema=file.schema_arrow)
    return folder / "lance"


FAST = "≥ 100 000 rows a second, ≤ 0.6 GiB"
STORES: dict[str, tuple[Callable[[Path, Path], Path] | None, str]] = {
    "Parquet": (None, FAST),
    "FAISS": (_faiss, FAST),
    "LanceDB": (_lancedb, FAST),
    "SQLite": (_sqlite, "≥ 20 000 rows a second, ≤ 0.6 GiB"),
}


def _texts() -> list[str]:
    """Pieces of sentences, all different."""
    words = (sentence.split() for sentence in sentences(ROWS)[0])
    pieces = (" ".join(one[start : start + WORDS]) for one in words for start in range(max(1, len(one) - WORDS + 1)))
    return list(dict.fromkeys(pieces))[:ROWS]


def _vectors(*arguments: str) -> tuple[dict[str, Any], float, float]:
    return timed("vectors", *arguments)


def timed(*arguments: str) -> tuple[dict[str, Any], float, float]:
    """What a command says, its seconds, and its own peak memory in GiB."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "embaudit", *arguments, "--json"]
    with TemporaryFile("w+") as said, TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=said, stderr=errors)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        errors.seek(0)
        if process.returncode not in (0, 1):
            raise RuntimeError(errors.read())
        return json.loads(said.read()), seconds, used.ru_maxrss / 2**20
