"""Which earlier audit an audit is compared with: the view ``audit_predecessor``, by cases."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from plausible import audit_record, measure_runs
from ready_warehouses import put_audit
from some_rows import mostly_slow

from embaudit.warehouse.connect import open_reader

QUESTION = {"sticky": {"copies": 8}, "measures": ["sticky", "socm"], "pooling": None, "max_length": None}


@pytest.fixture(scope="module")
def one_audit(empty_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    warehouse = Path(shutil.copy(empty_once, tmp_path_factory.mktemp("one")))
    audited(warehouse, "a1", "c1", "owner/name@v1")
    return warehouse


@pytest.fixture
def warehouse(one_audit: Path, tmp_path: Path) -> Path:
    """One audit: a1 of owner/name@v1, an hour ago."""
    return Path(shutil.copy(one_audit, tmp_path))


def audited(
    warehouse: Path,
    audit_id: str,
    checkpoint: str,
    source: str,
    minutes: int = 0,
    corpus_id: str = "w1",
    version: int = 1,
    **other: Any,
) -> None:
    """An audit that holds nothing but its corpora."""
    settings = {**QUESTION, "source": source, **other.pop("settings", {})}
    record = replace(audit_record(audit_id, checkpoint, minutes=minutes), settings=settings, **other)
    corpora = [{"name": "wikipedia", "corpus_id": corpus_id}, {"name": "sts", "corpus_id": "s1"}]
    put_audit(warehouse, record, {"audit_corpus": corpora}, [replace(run, version=version) for run in measure_runs()])


def predecessors(warehouse: Path) -> dict[str, str]:
    with open_reader(warehouse) as connection:
        found = connection.execute("SELECT audit_id, predecessor_audit_id FROM audit_predecessor").fetchall()
    assert len(dict(found)) == len(found), "an audit has one predecessor"
    return dict(found)


# A branch may have a slash in its name; then only what stands before the @ could be the repository.
FOLLOWS: list[dict[str, Any]] = [
    *({"source": source} for source in ("owner/name@v2", "owner/name@feature/x", "owner/name@v1")),
    # What decides no figure makes no other question.
    {"settings": {"measures": ["socm", "sticky"]}},
    {"settings": {"description": "in other words"}},
    {"device": "cuda"},
    {"embaudit_version": "0.2.0"},
]
DOES_NOT: list[dict[str, Any]] = [
    *({"source": source} for source in ("owner/other", "packaged:name", "/models/owner/name@v1", "owner2/name@v1")),
    {"checkpoint": "c1", "source": "owner/name@v2"},
]
OTHER_QUESTIONS: list[dict[str, Any]] = [
    {"settings": {"sticky": {"copies": 4}}},
    {"settings": {"measures": ["sticky"]}},
    {"settings": {"pooling": "cls"}},
    {"settings": {"max_length": 64}},
    {"seed": 1},
    {"dtype": "bfloat16"},
    {"corpus_id": "w2"},
    {"version": 2},
]


@pytest.mark.parametrize(
    "other", [{}, *mostly_slow(FOLLOWS, 2), *mostly_slow(DOES_NOT[::-1], 2), *mostly_slow(OTHER_QUESTIONS, 2)]
)
def test_another_revision_of_a_repository_follows_if_it_answers_the_same_question(
    warehouse: Path, other: dict[str, Any]
) -> None:
    audited(warehouse, "a2", **{"checkpoint": "c2", "source": "owner/name", "minutes": 60, **other})
    assert predecessors(warehouse) == ({"a2": "a1"} if other in ({}, *FOLLOWS) else {})


def test_a_folder_may_have_an_at_in_its_name(empty_warehouse: Path) -> None:
    for minutes, (audit_id, path) in enumerate((("a1", "/m/x@1"), ("a2", "/m/x@2"), ("a3", "/m/x@1"))):
        audited(empty_warehouse, audit_id, f"c{audit_id}", path, minutes=minutes)
    assert predecessors(empty_warehouse) == {"a3": "a1"}


def test_the_newest_of_the_earlier_ones(warehouse: Path) -> None:
    for audit_id, minutes in (("a2", 20), ("a3", 40), ("a4", 30)):
        audited(warehouse, audit_id, audit_id, "owner/name", minutes=minutes)
    assert predecessors(warehouse) == {"a2": "a1", "a4": "a2", "a3": "a4"}


def test_a_failed_audit_is_neither(warehouse: Path) -> None:
    audited(warehouse, "a2", "c2", "owner/name", minutes=20, status="failed")
    audited(warehouse, "a3", "c3", "owner/name", minutes=40)
    assert predecessors(warehouse) == {"a3": "a1"}
