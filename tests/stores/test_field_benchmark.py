"""``python -m benchmarks field`` says of a folder of stores what each is, and how often what is found."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.field import LookedAt, main, only_child, summary

VECTORS = np.random.default_rng(0).normal(size=(8, 16))


def written(place: Path, texts: list[str]) -> None:
    rows = [{"text": text, "vector": vector.tolist()} for text, vector in zip(texts, VECTORS, strict=True)]
    place.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_every_store_of_a_folder_is_looked_at_once_and_none_of_its_texts_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stores, kept = tmp_path / "stores", tmp_path / "kept.jsonl"
    (stores / "001").mkdir(parents=True)
    written(stores / "001" / "rows.jsonl", [f"secret {row}" for row in range(8)])
    (stores / "002").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    main([str(stores), "--keep", str(kept)])
    first = capsys.readouterr().out
    assert "| 001 | JSON | 8 | 16 | sound |" in first
    assert "| 002 |  | 0 | 0 | Error: STORE is a pointer of Git LFS" in first
    assert "| read, of those that are whole | 1 of 1: 100.0%" in first
    assert "secret" not in first + kept.read_text()
    before = kept.read_bytes()
    main([str(stores), "--keep", str(kept)])
    assert capsys.readouterr().out == first
    assert kept.read_bytes() == before


def test_the_counts_have_wilsons_intervals() -> None:
    looked = [
        LookedAt(str(n), kind="JSON", rows=100 + n, findings=("copied_texts",) if n < 3 else ()) for n in range(12)
    ]
    said = dict(
        summary([*looked, LookedAt("x", "Error: STORE is no store"), LookedAt("y", "Error: STORE has no rows.")])
    )
    assert said["stores"] == "14"
    assert said["read, of those that are whole"] == "12 of 13: 92.3% [66.7%, 98.6%]"
    assert said["`copied_texts`"] == "3 of 12: 25.0% [8.9%, 53.2%]"
    assert said["rows: quartiles"] == "103, 106, 108"


def test_a_folder_of_one_file_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "rows.csv").write_text("x")
    assert only_child(tmp_path / "a").name == "rows.csv"
    (tmp_path / "a" / "b" / "more.csv").write_text("x")
    assert only_child(tmp_path / "a").name == "b"
