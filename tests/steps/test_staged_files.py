"""Staged files: damage is noticed, and what a run uses is kept; and what a task is given of a corpus."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from some_rows import mostly_slow
from tiny import ENGLISH, tiny_bert

from embaudit.corpora.downstream.material import GradedPairs, Judgements
from embaudit.corpora.draw import Draw
from embaudit.corpora.judged import load_judged
from embaudit.corpora.load import load_corpus
from embaudit.measures.impact import ImpactSettings
from embaudit.measures.sticky.moments import Moments
from embaudit.measures.sticky.steps.files import moment_columns, read_frame, read_moments
from embaudit.measures.task_material import read_material, task_material
from embaudit.questions.audit import AuditRequest
from embaudit.steps.corpora import drawn_pairs, drawn_texts, rows_read, some_texts, stage_corpus
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus
from embaudit.steps.staging import files as staged_files
from embaudit.steps.staging.files import LEASES, delete_leftovers, find_leftovers, in_use
from embaudit.steps.staging.stage import (
    is_staged,
    read_batches,
    read_record,
    read_rows,
    read_table,
    write_columns,
    write_rows,
)
from embaudit.steps.tables import TextPairRow, TextRow
from embaudit.warehouse.expectations.check import _read_frame
from embaudit.words.errors import StorageError
from embaudit_flows.plan import plan_audit

DAYS = 40
FEW = Draw(rows=3, seed=0)


def texts_file(folder: Path) -> str:
    path = str(folder / "text-00000.parquet")
    row = dict.fromkeys(TextRow.table.schema) | {"corpus_id": "c1"}
    write_rows(path, [{**row, "position": i, "text": f"The river {i}."} for i in range(50)], TextRow.table.schema)
    return path


def pairs_file(folder: Path) -> str:
    path = str(folder / "text_pair-00000.parquet")
    row = dict.fromkeys(TextPairRow.table.schema) | {"corpus_id": "c1", "relation": "sts"}
    rows = [{**row, "position": i, "first": f"A river {i}.", "second": f"A star {i}."} for i in range(50)]
    write_rows(path, rows, TextPairRow.table.schema)
    return path


def moments_file(folder: Path) -> str:
    path = str(folder / "moments-00000.parquet")
    values = np.random.default_rng(0).normal(size=(20, 2, len(Moments.names(1))))
    blocks, schema = moment_columns(np.arange(20), [0, 1], Moments(values))
    write_columns(path, blocks, schema)
    return path


@cache
def flipped(content: bytes, columns: tuple[str, ...]) -> bytes:
    """With a bit of these columns flipped so that a reader without checksums sees other values, and nothing else."""
    good = rows_of(content)
    for place in range(4, len(content) - int.from_bytes(content[-8:-4], "little")):
        for bit in range(8):
            broken = bytearray(content)
            broken[place] ^= 1 << bit
            try:
                found = rows_of(bytes(broken))
                is_alike = found.schema == good.schema and found.num_rows == good.num_rows
                if is_alike and any(found.column(name) != good.column(name) for name in columns):
                    found.to_pylist()
                    return bytes(broken)
            except Exception:
                continue
    raise AssertionError("every flipped bit was noticed")


def rows_of(content: bytes) -> pa.Table:
    return pq.ParquetFile(pa.BufferReader(content)).read()


def corpus_at(path: str) -> StagedCorpus:
    table = Path(path).name.split("-")[0]
    kind = "texts" if table == "text" else "pairs"
    parts = (Staged(table="corpus", path="", rows=1), Staged(table=table, path=path, rows=50))
    return StagedCorpus(name="c", corpus_id="c1", kind=kind, source="s", rows=50, report="", files=parts)


def part(path: str) -> Staged:
    return Staged(table="moments", path=path, rows=1)


TEXT, PAIR, SUM = ("text",), ("first", "second"), ("token_id",)
READERS: list[tuple[Callable[[Path], str], tuple[str, ...], Callable[[str], Any]]] = [
    (texts_file, TEXT, lambda path: read_rows([path])),
    (texts_file, TEXT, read_table),
    (texts_file, TEXT, lambda path: read_table(path, ["text"])),
    (texts_file, TEXT, lambda path: list(read_batches(path, ["text"]))),
    (texts_file, TEXT, lambda path: drawn_texts(path, FEW)),
    (texts_file, TEXT, lambda path: rows_read(corpus_at(path), [FEW], str(Path(path).parent))),
    (texts_file, TEXT, lambda path: some_texts(corpus_at(path), 100)),
    (texts_file, TEXT, lambda path: _read_frame("text", path)),
    (pairs_file, PAIR, lambda path: drawn_pairs(path, FEW)),
    (pairs_file, PAIR, lambda path: rows_read(corpus_at(path), [FEW], str(Path(path).parent))),
    (moments_file, SUM, lambda path: read_frame(part(path))),
    (moments_file, SUM, lambda path: read_moments([part(path)])),
]


@pytest.mark.parametrize(("made", "columns", "read"), mostly_slow(READERS, 3))
def test_every_reader_notices_a_flipped_bit(
    tmp_path: Path, made: Callable[[Path], str], columns: tuple[str, ...], read: Callable[[str], Any]
) -> None:
    path = made(tmp_path)
    read(path)
    Path(path).write_bytes(flipped(Path(path).read_bytes(), columns))
    with pytest.raises(StorageError, match=re.escape(path)):
        read(path)


def test_nothing_reads_staged_rows_by_itself() -> None:
    """Only ``staging/stage.py`` reads rows of staged files; corpora and stored vectors are files of users."""
    for package in ("embaudit", "embaudit_tasks", "embaudit_flows"):
        root = Path(str(files(package)))
        for path in root.rglob("*.py"):
            of_users = any(path.is_relative_to(root / name) for name in ("corpora", "stores"))
            if of_users or path == root / "steps" / "staging" / "stage.py":
                continue
            found = re.findall(
                r"\b(?:pq|parquet)\.(?:read_table|ParquetFile|ParquetDataset)|pd\.read_parquet", path.read_text()
            )
            assert not found, path


def test_a_record_that_was_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text-00000.parquet"
    write_rows(path, [{"a": 1}], record=lambda: {"seconds": 1.5, "detail": {"blocks": 12}})
    assert read_record(path) == (1, ["a"], {"seconds": 1.5, "detail": {"blocks": 12}})
    content = path.read_bytes()
    assert content.count(b'"blocks": 12') >= 1
    path.write_bytes(content.replace(b'"blocks": 12', b'"blocks": 13'))
    with pytest.raises(StorageError, match=r"its record|cannot be read"):
        read_record(path)


def age(path: str | Path, days: float = DAYS) -> None:
    then = time.time() - days * staged_files.DAY_SECONDS
    os.utime(path, (then, then))


def days_old(path: str | Path) -> float:
    return (time.time() - Path(path).stat().st_mtime) / staged_files.DAY_SECONDS


def test_a_corpus_that_is_found_again_stays(tmp_path: Path) -> None:
    """Each file that an audit takes over from an earlier one is as young as if it had been made now."""
    corpus = load_corpus("wikipedia", "sample")
    staged = stage_corpus(corpus, str(tmp_path))
    (_, drawn) = rows_read(staged, [FEW], str(tmp_path))
    kept = [*(one.path for one in staged.files), drawn.path]
    for path in kept:
        age(path)
    assert len(find_leftovers(tmp_path, None, 30).staged) == len(set(kept)) == 3
    rows_read(stage_corpus(corpus, str(tmp_path)), [FEW], str(tmp_path))
    assert all(days_old(path) < 1 for path in kept)
    assert find_leftovers(tmp_path, None, 30).staged == ()


def test_is_staged_marks_what_is_there_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    assert not is_staged(path)
    assert not path.exists()
    path.touch()
    age(path)
    assert is_staged(path)
    assert days_old(path) < 1


@pytest.mark.parametrize(
    ("began", "renewed", "used", "goes"),
    [
        (50, 0.1, 40, False),  # used by an audit that is running
        (45, 0.1, 50, True),  # not used since it began
        (50, 2, 40, True),  # its process is gone
        (50, 0.1, 20, False),
    ],
)
def test_what_a_running_audit_used_is_not_deleted(
    tmp_path: Path, began: float, renewed: float, used: float, goes: bool
) -> None:
    path = tmp_path / "sticky" / "key" / "moments-00000.parquet"
    path.parent.mkdir(parents=True)
    path.touch()
    age(path, used)
    with in_use(tmp_path):
        (lease,) = (tmp_path / LEASES).iterdir()
        lease.write_text(repr(time.time() - began * staged_files.DAY_SECONDS))
        age(lease, renewed)
        found = find_leftovers(tmp_path, None, 30)
        assert (path in found.staged) is goes
        assert (lease in found.partial) is (renewed > 1)
    assert not lease.exists()
    assert path in find_leftovers(tmp_path, None, 30).staged or used < 30


def test_what_was_used_between_finding_and_deleting_stays(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.touch()
    age(path)
    found = find_leftovers(tmp_path, None, 30)
    assert is_staged(path)
    delete_leftovers(found)
    assert path.exists()


def test_a_lease_is_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from threading import Event

    renewed = Event()
    monkeypatch.setattr(staged_files, "RENEWED_SECONDS", 0.001)
    monkeypatch.setattr(staged_files, "mark_used", lambda paths: renewed.set())
    with in_use(tmp_path):
        assert renewed.wait(60)


# ---- what a task is given ----


WORDS = ENGLISH.split()


@pytest.fixture
def spec(home: Path, tmp_path_factory: pytest.TempPathFactory) -> CheckpointSpec:
    folder = tiny_bert(tmp_path_factory.mktemp("checkpoint") / "bert")
    return plan_audit(AuditRequest(checkpoint=str(folder), device="cpu")).spec


def test_a_querys_own_document(spec: CheckpointSpec, tmp_path: Path) -> None:
    folder = tmp_path / "arguments"
    (folder / "qrels").mkdir(parents=True)
    rows = [json.dumps({"_id": f"a{i}", "text": WORDS[i]}) + "\n" for i in range(12)]
    (folder / "corpus.jsonl").write_text("".join(rows))
    (folder / "queries.jsonl").write_text("".join(rows[:6]))
    (folder / "qrels" / "test.tsv").write_text("".join(f"a{i}\ta{i + 6}\t1\n" for i in range(6)))
    judged = load_judged(str(folder))
    corpora = [stage_corpus(one, str(tmp_path)) for one in (judged.documents, judged.queries)]
    (material,) = task_material.compute(str(tmp_path), spec, corpora, ImpactSettings(), 0)
    found, _ = read_material(material)
    assert isinstance(found, Judgements)
    for query, relevant, own in zip(found.queries, found.relevant, found.own, strict=True):
        assert [found.documents[place] for place in own] == [query]
        assert [found.documents[place] for place in relevant] == [WORDS[WORDS.index(query) + 6]]


def test_the_data_set_of_a_pair(spec: CheckpointSpec, tmp_path: Path) -> None:
    folder = tmp_path / "sts"
    folder.mkdir()
    for name, top in (("five", 5), ("one", 1)):
        lines = [f"{top * i / 8}\t{WORDS[i]} {name}\t{WORDS[i + 1]}\n" for i in range(8)]
        (folder / f"{name}.tsv").write_text("".join(lines))
    corpora = [stage_corpus(load_corpus("sts", str(folder)), str(tmp_path))]
    (material,) = task_material.compute(str(tmp_path), spec, corpora, ImpactSettings(), 0)
    found, _ = read_material(material)
    assert isinstance(found, GradedPairs)
    assert [first.split()[1] for first in found.firsts] == list(found.data_sets)
    assert sorted(found.data_sets) == ["five"] * 8 + ["one"] * 8
