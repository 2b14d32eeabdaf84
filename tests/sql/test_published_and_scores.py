"""Published figures and downstream scores beside an audit's own: whose they are, and how far apart."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from plausible import audit_record, plausible_rows
from plausible_sticky import U
from ready_warehouses import put_audit
from some_rows import mostly_slow
from warehouse_rows import rows

from embaudit.warehouse.connect import open_writer
from embaudit.warehouse.query import run_query

# arXiv 2604.27398: Wikipedia, MS MARCO passages, hard negatives.
SOCM = {
    "bert-base-uncased": (0.396, 0.491, 0.480),
    "h-tomo/unsup-simcse-bert-base-uncased-mean": (0.193, 0.269, 0.257),
    "intfloat/e5-base-v2": (0.029, 0.043, 0.036),
    "thenlper/gte-base": (0.018, 0.025, 0.017),
    "microsoft/MiniLM-L12-H384-uncased": (0.242, 0.289, 0.340),
    "sentence-transformers/all-MiniLM-L12-v2": (0.313, 0.348, 0.330),
    "intfloat/e5-small-v2": (0.099, 0.085, 0.087),
    "thenlper/gte-small": (0.055, 0.055, 0.048),
    "microsoft/mpnet-base": (0.117, 0.106, 0.129),
    "sentence-transformers/all-mpnet-base-v2": (0.100, 0.094, 0.093),
    "nomic-ai/nomic-bert-2048": (0.139, 0.110, 0.131),
    "nomic-ai/nomic-embed-text-v1.5": (0.122, 0.133, 0.104),
}


# Where the figures that have a published one, and the measures beside a score, come from.
COMPARED = (
    "checkpoint",
    "corpus",
    "sticky_summary",
    "sticky_reference_summary",
    "socm_summary",
    "layer_stat",
    "pooled_stat",
)


@pytest.fixture
def warehouse(empty_warehouse: Path) -> Path:
    return empty_warehouse


def write(warehouse: Path, sql: str, *parameters: Any) -> None:
    with open_writer(warehouse, 0) as connection:
        connection.execute(sql, list(parameters))


def audit(
    warehouse: Path,
    source: str,
    audit_id: str = "a1",
    checkpoint_id: str = "c1",
    minutes: int = 0,
    **changes: dict[str, Any],
) -> None:
    """An audit of a checkpoint of this name; ``changes`` are of every row of a table."""
    found = plausible_rows(checkpoint_id, source)
    for table, values in changes.items():
        found[table] = [{**row, **values} for row in found[table]]
    put_audit(
        warehouse,
        audit_record(audit_id, checkpoint_id, minutes=minutes),
        {name: found[name] for name in COMPARED},
    )


def add_checkpoint(warehouse: Path, source: str, checkpoint: str = "c1") -> None:
    """A checkpoint's row alone: what a name matches hangs on nothing else."""
    row = {**plausible_rows(checkpoint, source)["checkpoint"][0]}
    places = ", ".join("?" for _ in row)
    write(warehouse, f"INSERT INTO checkpoint ({', '.join(row)}) VALUES ({places})", *row.values())


def matches(warehouse: Path, kind: str = "published") -> list[tuple[Any, ...]]:
    return rows(warehouse, "SELECT name, matched_by FROM checkpoint_match WHERE kind = ? ORDER BY ALL", kind)


# ---- the figures ----


def test_the_published_averages_are_those_of_the_paper(warehouse: Path) -> None:
    found = rows(
        warehouse,
        "SELECT checkpoint, corpus, value FROM published_figure WHERE measure = 'socm_mean' ORDER BY ALL",
    )
    corpora = ("wikipedia", "msmarco", "msmarco-hard-negatives")
    expected = [(name, corpus, value) for name, of in SOCM.items() for corpus, value in zip(corpora, of, strict=True)]
    assert found == sorted(expected)
    assert rows(warehouse, "SELECT DISTINCT source FROM published_figure WHERE measure = 'socm_mean'") == [
        ("arXiv 2604.27398",)
    ]


def test_the_published_sticky_figures_are_those_of_the_golden_file(warehouse: Path, shared: Path) -> None:
    with (shared / "golden" / "std_published_40_checkpoints.csv").open() as file:
        golden = list(csv.DictReader(file))
    names = {
        "u": "u_mean_token_similarity",
        "reference_scanned": "available",
        "reference_candidates": "candidates",
        "reference_sticky": "sticky",
        "reference_cutoff": "shortlist_cutoff",
    }
    found = rows(
        warehouse,
        "SELECT regexp_extract(checkpoint, '[^/]*$'), measure, value FROM published_figure "
        "WHERE source = 'arXiv 2507.18171' AND corpus = ''",
    )
    assert len(golden) == 40
    assert {(name, measure): value for name, measure, value in found} == {
        (row["checkpoint"], measure): float(row[column]) for row in golden for measure, column in names.items()
    }
    assert len(found) == 40 * 5


def test_checkpoints_of_both_papers_have_one_name(warehouse: Path) -> None:
    found = rows(
        warehouse,
        "SELECT lower(regexp_extract(checkpoint, '[^/]*$')) AS last, count(DISTINCT checkpoint) FROM published_figure "
        "GROUP BY last HAVING count(DISTINCT checkpoint) > 1",
    )
    assert found == []
    both = rows(
        warehouse,
        "SELECT checkpoint FROM published_figure WHERE measure IN ('u', 'socm_mean') AND corpus IN ('', 'wikipedia') "
        "GROUP BY checkpoint HAVING count(*) = 2 ORDER BY 1",
    )
    assert [name for (name,) in both] == [
        "nomic-ai/nomic-embed-text-v1.5",
        "sentence-transformers/all-mpnet-base-v2",
        "thenlper/gte-base",
        "thenlper/gte-small",
    ]


def test_they_are_there_once_however_often_the_warehouse_is_opened(warehouse: Path) -> None:
    for _ in range(2):
        with open_writer(warehouse, 0) as connection:
            assert connection.execute("SELECT count(*) FROM published_figure").fetchone() == (12 * 3 + 2 + 40 * 5,)
            assert connection.execute("SELECT count(*) FROM downstream_score").fetchone() == (0,)


# ---- whose they are ----


@pytest.mark.parametrize(
    ("source", "expected"),
    mostly_slow(
        [
            ("sentence-transformers/all-MiniLM-L6-v2", [("sentence-transformers/all-MiniLM-L6-v2", "id")]),
            ("Sentence-Transformers/ALL-minilm-l6-v2@8b3219a9", [("sentence-transformers/all-MiniLM-L6-v2", "id")]),
            ("packaged:all-MiniLM-L6-v2", [("sentence-transformers/all-MiniLM-L6-v2", "name")]),
            ("/home/me/models/all-MiniLM-L6-v2", [("sentence-transformers/all-MiniLM-L6-v2", "name")]),
            ("/home/me@work/models/E5-BASE-v2", [("intfloat/e5-base-v2", "name")]),
            ("/cache/hub/models--intfloat--e5-base-v2/snapshots/0a1b2c", [("intfloat/e5-base-v2", "id")]),
            ("google-bert/bert-base-uncased@main", [("bert-base-uncased", "name")]),
            ("/models/bert-base-uncased", [("bert-base-uncased", "name")]),
            # Another owner's checkpoint of the same name is another checkpoint.
            ("someone/e5-base-v2", []),
            ("/models/my-e5-base-v2", []),
            ("/models/e5-base-v2/checkpoint-500", []),
            ("packaged:tiny", []),
        ],
        4,
    ),
)
def test_a_published_name_is_found_by_id_or_by_its_last_part(
    warehouse: Path, source: str, expected: list[tuple[str, str]]
) -> None:
    add_checkpoint(warehouse, source)
    assert matches(warehouse) == expected


def test_a_name_that_fits_two_published_checkpoints_is_neither(warehouse: Path) -> None:
    write(warehouse, "INSERT INTO published_figure VALUES ('other/e5-base-v2', 'u', '', 0.5, 'a paper')")
    add_checkpoint(warehouse, "/models/e5-base-v2")
    assert matches(warehouse) == []
    add_checkpoint(warehouse, "intfloat/e5-base-v2", "c2")
    assert matches(warehouse) == [("intfloat/e5-base-v2", "id")]


@pytest.mark.slow
def test_a_checkpoint_has_one_published_name_even_where_two_spellings_are_published(warehouse: Path) -> None:
    write(warehouse, "INSERT INTO published_figure VALUES ('e5-base-v2', 'u', '', 0.5, 'a paper')")
    for i, source in enumerate(("intfloat/e5-base-v2", "packaged:e5-base-v2")):
        add_checkpoint(warehouse, source, f"c{i}")
    assert matches(warehouse) == [("intfloat/e5-base-v2", "id"), ("intfloat/e5-base-v2", "name")]


# ---- beside ours ----


def test_published_stands_beside_own_with_the_difference(warehouse: Path) -> None:
    audit(warehouse, "packaged:all-MiniLM-L6-v2", socm_summary={"socm_mean": 0.31})
    audit(warehouse, "intfloat/e5-base-v2@abc", "a2", "c2", socm_summary={"socm_mean": 0.03, "socm_low": 0.02})
    result = run_query(warehouse, "published")
    found = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
    # L6 is in the one paper, e5-base-v2 in the other.
    assert [(row["source"], row["measure"], row["corpus"], row["own"], row["published"]) for row in found] == [
        ("intfloat/e5-base-v2@abc", "socm_mean", "wikipedia", 0.03, 0.029),
        ("packaged:all-MiniLM-L6-v2", "reference_candidates", "", 2, 474),
        ("packaged:all-MiniLM-L6-v2", "reference_cutoff", "", 4.0, 49.2042),
        ("packaged:all-MiniLM-L6-v2", "reference_scanned", "", 7, 23699),
        ("packaged:all-MiniLM-L6-v2", "reference_sticky", "", 1, 21),
        ("packaged:all-MiniLM-L6-v2", "u", "", U, 0.1998),
    ]
    e5, *_, u = found
    assert (e5["own_low"], e5["difference"], e5["matched_by"]) == (0.02, 0.001, "id")
    assert (e5["own_texts"], e5["own_texts_from"], e5["published_in"]) == (4, "sample", "arXiv 2604.27398")
    assert (u["difference"], u["matched_by"], u["own_low"], u["own_texts"]) == (0.0002, "name", None, None)


def test_of_each_figure_the_newest_audit_that_has_it_counts(warehouse: Path) -> None:
    audit(warehouse, "thenlper/gte-base", socm_summary={"socm_mean": 0.5})
    audit(warehouse, "thenlper/gte-base", "a2", minutes=5, socm_summary={"socm_mean": 0.25})
    # A third one without SOCM does not hide the second's.
    rows_of_it = plausible_rows("c1", "thenlper/gte-base")
    found = {name: rows_of_it[name] for name in COMPARED if "socm" not in name}
    put_audit(warehouse, audit_record("a3", "c1", minutes=9), found)
    beside = rows(warehouse, "SELECT measure, audit_id, own FROM published_beside_own ORDER BY ALL")
    assert [row for row in beside if row[0] in ("u", "socm_mean")] == [("socm_mean", "a2", 0.25), ("u", "a3", U)]
    every = rows(warehouse, "SELECT audit_id FROM published_beside_audit WHERE measure = 'socm_mean' ORDER BY 1")
    assert every == [("a1",), ("a2",)]


def test_a_failed_audit_has_nothing_beside_it(warehouse: Path) -> None:
    audit(warehouse, "thenlper/gte-base")
    write(warehouse, "UPDATE audit SET status = 'failed'")
    assert rows(warehouse, "SELECT * FROM published_beside_own") == []


# ---- scores ----


def score(
    warehouse: Path,
    checkpoint: str,
    task: str,
    value: float,
    split: str = "test",
    subset: str = "default",
    revision: str = "",
) -> None:
    write(
        warehouse,
        "INSERT INTO downstream_score VALUES (?, ?, ?, ?, ?, ?, NULL, 'file', now())",
        *(checkpoint, revision, task, split, subset, value),
    )


def beside(warehouse: Path, columns: str = "source, task, score") -> list[tuple[Any, ...]]:
    return rows(warehouse, f"SELECT {columns} FROM score_beside_measure WHERE measure = 'socm' ORDER BY source, task")


def test_a_task_is_the_mean_over_the_test_parts_that_all_have(warehouse: Path) -> None:
    for i, name in enumerate(("m/a", "m/b")):
        audit(warehouse, name, f"a{i}", f"c{i}")
    for subset, value in (("en", 0.8), ("de", 0.6), ("fr", 0.1)):
        score(warehouse, "m/a", "STS17", value, subset=subset)
        if subset != "fr":
            score(warehouse, "m/b", "STS17", value / 2, subset=subset)
    score(warehouse, "m/a", "STS17", 0.0, split="validation", subset="en")
    score(warehouse, "m/b", "STS17", 0.0, split="validation", subset="en")
    # No test split: the dev split is what there is.
    score(warehouse, "m/a", "MSMARCO", 0.5, split="dev")
    # Nothing in common: no task.
    score(warehouse, "m/a", "Other", 0.5, subset="x")
    score(warehouse, "m/b", "Other", 0.5, subset="y")
    assert beside(warehouse, "source, task, parts, round(score, 9)") == [
        ("m/a", "MSMARCO", 1, 0.5),
        ("m/a", "STS17", 2, 0.7),
        ("m/b", "STS17", 2, 0.35),
    ]


def test_the_score_of_the_audited_revision_counts_and_else_a_named_one(warehouse: Path) -> None:
    audit(warehouse, "m/a@abc", checkpoint={"revision": "abc"})
    for revision, value in (("", 0.1), ("zzz", 0.2), ("abc", 0.3)):
        score(warehouse, "m/a", "T", value, revision=revision)
    assert beside(warehouse) == [("m/a@abc", "T", 0.3)]
    write(warehouse, "DELETE FROM downstream_score WHERE revision = 'abc'")
    assert beside(warehouse) == [("m/a@abc", "T", 0.2)]


def test_long_and_short_names_of_one_checkpoint_go_together(warehouse: Path) -> None:
    audit(warehouse, "m/a@abc")
    score(warehouse, "m/a", "T", 0.1)
    score(warehouse, "a", "U", 0.2)
    score(warehouse, "other/a", "V", 0.3)
    assert beside(warehouse) == [("m/a@abc", "T", 0.1), ("m/a@abc", "U", 0.2)]
    assert matches(warehouse, "scored") == [("a", "name"), ("m/a", "id")]


def test_one_model_under_two_names_or_poolings_counts_once(warehouse: Path) -> None:
    audit(warehouse, "packaged:a", checkpoint={"weights_sha256": "ab" * 32})
    audit(warehouse, "m/a@abc", "a2", "c2", 5, checkpoint={"weights_sha256": "ab" * 32, "pooling_is_mean": False})
    score(warehouse, "m/a", "T", 0.1)
    # The audit under the deployed pooling.
    assert beside(warehouse, "source, audit_id") == [("packaged:a", "a1")]
    # Other weights of the same name: the id decides, and between names the newest audit.
    audit(warehouse, "/models/a", "a3", "c3", 9)
    assert beside(warehouse, "source, audit_id") == [("/models/a", "a3")]
    audit(warehouse, "m/a@def", "a4", "c4", 1)
    assert beside(warehouse, "source, audit_id") == [("m/a@def", "a4")]


def test_spread_is_that_of_the_states_that_are_pooled(warehouse: Path) -> None:
    found = plausible_rows("c1", "m/a")
    (pooled,) = found["pooled_stat"]
    assert pooled["normalised_spread"] not in {row["normalised_spread"] for row in found["layer_stat"]}
    put_audit(warehouse, audit_record(), {name: found[name] for name in COMPARED})
    score(warehouse, "m/a", "T", 0.1)
    assert rows(warehouse, "SELECT corpus, value FROM score_beside_measure WHERE measure = 'spread'") == [
        ("wikipedia", pooled["normalised_spread"])
    ]
