"""Score files: rows in four formats, MTEB's results old and new, and every way they can be wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from score_files import REVISION, mteb_result, write_mteb

from embaudit.corpora.scores import Score, ScoredMeasure, average_over_tasks, correlate, read_scores, spearman
from embaudit.words.errors import UsageError

ROWS: list[dict[str, Any]] = [
    {"checkpoint": "intfloat/e5-base-v2", "task": "STS12", "score": 0.735},
    {
        "checkpoint": "thenlper/gte-base",
        "task": "STS12",
        "score": 0.757,
        "split": "dev",
        "subset": "en",
        "metric": "rho",
    },
]


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """The rows in the format that the name promises."""
    columns = list({name: None for row in rows for name in row})
    separator = "\t" if path.suffix == ".tsv" else ","
    match path.suffix:
        case ".csv" | ".tsv":
            lines = [separator.join(columns)]
            lines += [separator.join(str(row.get(name, "")) for name in columns) for row in rows]
            path.write_text("\ufeff" + "\r\n".join(lines) + "\r\n", encoding="utf-8")
        case ".json":
            path.write_text(json.dumps(rows))
        case _:
            path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n")
    return path


def key(one: Score) -> tuple[Any, ...]:
    return (one.checkpoint, one.revision, one.task, one.split, one.subset, one.score, one.metric)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".jsonl", ".ndjson"])
def test_rows_of_every_format_are_the_same(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"scores{suffix}", ROWS)
    found = read_scores([path])
    assert [key(one) for one in found.scores] == [
        ("intfloat/e5-base-v2", "", "STS12", "test", "default", 0.735, None),
        ("thenlper/gte-base", "", "STS12", "dev", "en", 0.757, "rho"),
    ]
    assert (found.files, found.repeated, found.skipped) == (1, 0, [])
    assert found.scores[0].origin == str(path)


def test_columns_may_stand_in_any_order_and_case_beside_others(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text('Note,Score,TASK,Checkpoint\n"a, b",1e-1,T,m\n\n')
    assert [key(one) for one in read_scores([path]).scores] == [("m", "", "T", "test", "default", 0.1, None)]


def test_the_checkpoint_may_come_with_the_command(tmp_path: Path) -> None:
    path = write(tmp_path / "scores.csv", [{"task": "A", "score": 1}, {"task": "B", "score": 2}])
    assert {one.checkpoint for one in read_scores([path], "me/mine").scores} == {"me/mine"}
    with pytest.raises(UsageError, match=r"scores.csv has no column checkpoint; .* task, score.*--checkpoint NAME"):
        read_scores([path])


def test_one_name_is_not_for_several_checkpoints(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="scores of several checkpoints: intfloat/e5-base-v2, thenlper/gte-base"):
        read_scores([write(tmp_path / "scores.csv", ROWS)], "me/mine")
    found = read_scores([write(tmp_path / "one.csv", ROWS[:1])], "me/mine")
    assert [one.checkpoint for one in found.scores] == ["me/mine"]


@pytest.mark.parametrize(
    ("suffix", "row", "words"),
    [
        (".csv", {"score": "nan"}, "line 3: the score 'nan' is not a finite number"),
        (".tsv", {"score": "-inf"}, "line 3: the score '-inf' is not a finite number"),
        (".csv", {"score": "0,5"}, "line 3: 4 fields but 3 columns"),
        (".csv", {"score": ""}, "line 3: no score"),
        (".csv", {"task": " "}, "line 3: no task"),
        (".json", {"score": float("nan")}, "row 2: the score nan is not a finite number"),
        (".json", {"score": float("inf")}, "row 2: the score inf is not a finite number"),
        (".json", {"score": True}, "row 2: the score True is not a finite number"),
        (".json", {"score": None}, "row 2: no score"),
        (".jsonl", {"score": "high"}, "line 2: the score 'high' is not a finite number"),
        (".jsonl", {"checkpoint": None}, "line 2: no checkpoint"),
        (".jsonl", {"task": ["T"]}, r"line 2: task is \['T'\]"),
        (".jsonl", {"split": 0.5}, "line 2: split is 0.5"),
    ],
)
def test_a_wrong_row_is_named_by_file_row_and_field(
    tmp_path: Path, suffix: str, row: dict[str, Any], words: str
) -> None:
    good = {"checkpoint": "m", "task": "T", "score": 0.5}
    path = write(tmp_path / f"scores{suffix}", [{**good, "task": "other"}, {**good, **row}])
    with pytest.raises(UsageError, match=rf"scores\{suffix}, {words}") as caught:
        read_scores([path])
    assert caught.value.kept == "Nothing was imported."


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", b"", r"no column checkpoint and no column task and no column score; its first line is: \(empty\)"),
        ("a.csv", b"checkpoint,task,score\n", "No scores in"),
        ("a.csv", b"checkpoint,task,score,task\nm,T,1,U\n", "has duplicate columns"),
        ("a.csv", b'checkpoint,task,score\nm,"T,1\n', "line 2"),
        ("a.csv", b"checkpoint,task,score\n\xff\xfe,T,1\n", "is not UTF-8"),
        ("a.json", b"[1]", "row 1: a JSON int where an object was expected"),
        ("a.json", b"{}", "neither a list of scores nor an MTEB result"),
        ("a.json", b"[{", "is not JSON"),
        ("a.jsonl", b'{"checkpoint": "m"', "line 1: not JSON"),
        ("a.xlsx", b"PK", "not in a supported score format"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=words):
        read_scores([tmp_path / name])


def test_the_same_row_twice_counts_once_and_another_score_is_an_error(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a.csv", ROWS), write(tmp_path / "b.jsonl", ROWS[:1])
    found = read_scores([first, second])
    assert (len(found.scores), found.files, found.repeated) == (2, 2, 1)
    other = write(tmp_path / "c.csv", [{**ROWS[0], "score": 0.8}])
    with pytest.raises(UsageError, match=r"Two scores of intfloat/e5-base-v2 on STS12 .*a.csv, line 2.*c.csv, line 2"):
        read_scores([first, other])
    # Another revision of the checkpoint is another score.
    revised = write(tmp_path / "d.csv", [{**ROWS[0], "score": 0.8, "revision": "abc"}])
    assert len(read_scores([first, revised]).scores) == 3


# ---- MTEB ----


def test_one_mteb_file_is_named_by_the_meta_beside_it(tmp_path: Path) -> None:
    place = write_mteb(tmp_path, "sentence-transformers/all-MiniLM-L6-v2", {"STSBenchmark": 0.82})
    (one,) = read_scores([place / "STSBenchmark.json"]).scores
    expected = (
        "sentence-transformers/all-MiniLM-L6-v2",
        REVISION,
        "STSBenchmark",
        "test",
        "default",
        0.82,
        "main_score",
    )
    assert key(one) == expected


def test_without_meta_the_folders_name_checkpoint_and_revision(tmp_path: Path) -> None:
    write_mteb(tmp_path, "intfloat/e5-base-v2", {"STS12": 0.7}, meta=False)
    write_mteb(tmp_path, "thenlper/gte-base", {"STS12": 0.6}, revision="no_revision_available", meta=False)
    found = [(one.checkpoint, one.revision) for one in read_scores([tmp_path]).scores]
    assert found == [("intfloat/e5-base-v2", REVISION), ("thenlper/gte-base", "")]


def test_a_lone_mteb_file_needs_a_name(tmp_path: Path) -> None:
    path = tmp_path / "STS12.json"
    path.write_text(json.dumps(mteb_result("STS12", {"main_score": 0.7})))
    with pytest.raises(UsageError, match=r"nothing names its checkpoint.*--checkpoint owner/name"):
        read_scores([path])
    assert [key(one)[:2] for one in read_scores([path], "me/mine").scores] == [("me/mine", "")]


def test_every_split_and_subset_is_a_score(tmp_path: Path) -> None:
    result = mteb_result("STS17", {"main_score": 0.8, "hf_subset": "en-en"}, {"main_score": 0.7, "hf_subset": "en-de"})
    result["scores"]["validation"] = [{"main_score": 0.9, "languages": []}]
    path = tmp_path / "STS17.json"
    path.write_text(json.dumps(result))
    assert [key(one)[3:6] for one in read_scores([path], "m").scores] == [
        ("test", "en-en", 0.8),
        ("test", "en-de", 0.7),
        ("validation", "default", 0.9),
    ]


def test_a_folder_of_results_says_what_it_skipped(tmp_path: Path) -> None:
    place = write_mteb(tmp_path, "intfloat/e5-base-v2", {"STS12": 0.7, "STS13": 0.8})
    (place / "notes.json").write_text('{"by": "hand"}')
    (place / "STS14.json").write_text(
        json.dumps(mteb_result("STS14", {"main_score": float("nan")}, {"main_score": None, "hf_subset": "x"}))
    )
    (place / "STS15.json").write_text(json.dumps({**mteb_result("STS15"), "scores": {}}))
    (place / "experiments" / "fp16").mkdir(parents=True)
    (place / "experiments" / "fp16" / "STS12.json").write_text(json.dumps(mteb_result("STS12", {"main_score": 0.1})))
    found = read_scores([tmp_path])
    assert [(one.task, one.score) for one in found.scores] == [("STS12", 0.7), ("STS13", 0.8)]
    assert [(Path(one.origin).name, one.why) for one in found.skipped] == [
        ("STS14.json", "test, default: the main score is NaN"),
        ("STS14.json", "test, x: the main score is null"),
        ("STS15.json", "no split with scores"),
        ("STS12.json", "an experiment: the checkpoint under other settings"),
        ("notes.json", "not an MTEB result"),
    ]


def test_a_folder_without_results_or_with_a_broken_one_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"contains no \.json files"):
        read_scores([tmp_path])
    (tmp_path / "notes.json").write_text("{}")
    with pytest.raises(UsageError, match=r"No scores in .*notes.json: not an MTEB result"):
        read_scores([tmp_path])
    (tmp_path / "STS12.json").write_text('{"task_name": "STS12", "scor')
    with pytest.raises(UsageError, match=r"STS12.json is not JSON"):
        read_scores([tmp_path])


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ({"map_at_10": 0.1, "ndcg_at_10": 0.42, "ndcg_at_1": 0.3}, [("default", "ndcg_at_10", 0.42)]),
        (
            {"cos_sim": {"pearson": 0.1, "spearman": 0.7}, "dot": {"spearman": 0.2}},
            [("default", "cos_sim.spearman", 0.7)],
        ),
        ({"cos_sim": {"ap": 0.6, "f1": 0.5}, "max": {"ap": 0.7}}, [("default", "cos_sim.ap", 0.6)]),
        ({"v_measure": 0.3, "v_measure_std": 0.01}, [("default", "v_measure", 0.3)]),
        ({"map": 0.695, "mrr": 0.803}, [("default", "map", 0.695)]),
        ({"accuracy": 0.8, "ap": 0.6, "main_score": 0.8, "evaluation_time": 2.5}, [("default", "main_score", 0.8)]),
        (
            {"en": {"accuracy": 0.8, "main_score": 0.81}, "de": {"accuracy": 0.7}, "evaluation_time": 2.5},
            [("en", "main_score", 0.81), ("de", "accuracy", 0.7)],
        ),
    ],
)
def test_results_from_before_mteb_1_11(tmp_path: Path, scores: dict[str, Any], expected: list[tuple[Any, ...]]) -> None:
    path = tmp_path / "Task.json"
    head = {"dataset_revision": None, "mteb_dataset_name": "Task", "mteb_version": "1.1.1"}
    path.write_text(json.dumps({**head, "test": scores}))
    found = read_scores([path], "m").scores
    assert [(one.subset, one.metric, one.score) for one in found] == expected
    assert {(one.task, one.split) for one in found} == {("Task", "test")}


def test_an_old_result_without_a_known_main_score_is_skipped(tmp_path: Path) -> None:
    place = write_mteb(tmp_path, "a/b", {"STS12": 0.7})
    old = {"mteb_dataset_name": "ArguAna", "evaluation_time": "", "queries": {"NDCG@10": 0.32697}}
    (place / "ArguAna.json").write_text(json.dumps(old))
    found = read_scores([tmp_path])
    assert [one.why for one in found.skipped] == ["queries, default: the main score is null"]


# ---- spearman's rho and its p against scipy and against numbers worked out by hand ----


@pytest.mark.parametrize("n", [3, 5, 7])
@pytest.mark.parametrize("ties", [False, True])
def test_a_small_p_counts_every_pairing(n: int, ties: bool) -> None:
    generator = np.random.default_rng(n)
    x, y = generator.normal(size=(2, n))
    if ties:
        x, y = np.round(x), np.round(y * 2)
        x[0], x[1], y[0], y[2] = 3, 4, -3, 4
    found = spearman(x.tolist(), y.tolist())
    assert found.rho == pytest.approx(stats.spearmanr(x, y).statistic)
    # rho is Pearson's correlation of the ranks.
    orders, ranks = (
        stats.zscore(values, axis=-1) for values in ([*permutations(stats.rankdata(x))], stats.rankdata(y))
    )
    everything = orders @ ranks / n
    tail = min(np.mean(everything >= found.rho - 1e-12), np.mean(everything <= found.rho + 1e-12))
    assert found.p == pytest.approx(min(1.0, 2 * tail))
    assert (found.n, found.method) == (n, "exact")


def test_the_exact_p_is_scipys() -> None:
    x, y = np.arange(8.0), np.array([2.0, 1, 4, 3, 3, 6, 8, 7])
    wanted = stats.permutation_test(
        (x,), lambda x: stats.spearmanr(x, y).statistic, permutation_type="pairings", n_resamples=100, vectorized=False
    )
    exact = stats.permutation_test(
        (stats.rankdata(x),),
        lambda ranks, axis=-1: np.sum(ranks * stats.rankdata(y), axis=axis),
        permutation_type="pairings",
        vectorized=True,
        n_resamples=np.inf,
        batch=10_000,
    )
    found = spearman(x.tolist(), y.tolist())
    assert found.rho == pytest.approx(wanted.statistic)
    assert found.p == pytest.approx(exact.pvalue)


def test_perfect_order_of_three_means_little() -> None:
    """Two of the six pairings are as extreme."""
    assert spearman([1, 2, 3], [10, 20, 30]).p == pytest.approx(2 / 6)


def test_from_ten_on_p_is_students_t() -> None:
    generator = np.random.default_rng(0)
    for n in (10, 12, 40):
        x, y = generator.normal(size=(2, n))
        found, wanted = spearman(x, y), stats.spearmanr(x, y)
        assert (found.rho, found.p, found.method) == (
            pytest.approx(wanted.statistic),
            pytest.approx(wanted.pvalue),
            "t",
        )
    assert spearman(range(9), range(9)).method == "exact"


@pytest.mark.parametrize(
    ("x", "y"), [([], []), ([1], [2]), ([1, 2], [2, 1]), ([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [5, 5, 5])]
)
def test_where_there_is_no_order_there_is_no_rho(x: list[float], y: list[float]) -> None:
    found = spearman(x, y)
    assert (found.n, found.rho, found.p, found.method) == (len(x), None, None, None)


def test_averages_are_over_the_same_tasks() -> None:
    scores = {("a", "T"): 1.0, ("a", "U"): 3.0, ("b", "T"): 2.0, ("b", "U"): 6.0, ("b", "V"): 100.0}
    assert average_over_tasks(scores) == ({"a": 2.0, "b": 4.0}, ["T", "U"])
    assert average_over_tasks(scores, ["V", "T"]) == ({"b": 51.0}, ["T", "V"])
    assert average_over_tasks({("a", "T"): 1.0, ("b", "U"): 1.0}) == ({}, [])


def test_correlations_by_measure_corpus_and_task() -> None:
    values, scores = {"a": 1.0, "b": 2.0, "c": 3.0}, {"T": (9.0, 8.0, 7.0), "U": (1.0, 3.0, 2.0)}
    rows = [
        ScoredMeasure(one, task, score, measure, "wikipedia", value if measure == "socm" else -value)
        for measure in ("socm", "spread")
        for task, all_scores in scores.items()
        for (one, value), score in zip(values.items(), all_scores, strict=True)
    ]
    found = {(one.measure, one.task): one.correlation.rho for one in correlate(rows)}
    # Averages 5, 5.5, 4.5: ranks 2 3 1 against 1 2 3, d = 1 1 2, rho = 1 - 6·6/24.
    assert found == {
        ("socm", "T"): pytest.approx(-1),
        ("socm", "U"): pytest.approx(0.5),
        ("socm", "average of 2 tasks"): pytest.approx(-0.5),
        ("spread", "T"): pytest.approx(1),
        ("spread", "U"): pytest.approx(-0.5),
        ("spread", "average of 2 tasks"): pytest.approx(0.5),
    }
    assert [one.task for one in correlate(rows, only_average=True)] == ["average of 2 tasks"] * 2
