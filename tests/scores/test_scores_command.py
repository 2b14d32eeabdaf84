"""``embaudit scores`` as a person meets it, and the published figures on an audit's page."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from own_processes import Start
from plausible import audit_record, plausible_rows
from ready_warehouses import put_audit
from scipy import stats
from score_files import REVISION, put_audits, write_mteb

from embaudit.cli.main import cli
from embaudit.warehouse.query import run_query
from embaudit.words.errors import EmbauditError, UsageError, WarehouseError

# arXiv 2604.27398, Wikipedia, in the order of the paper's pairs.
PUBLISHED = {
    "google-bert/bert-base-uncased": 0.396,
    "h-tomo/unsup-simcse-bert-base-uncased-mean": 0.193,
    "intfloat/e5-base-v2": 0.029,
    "thenlper/gte-base": 0.018,
    "microsoft/MiniLM-L12-H384-uncased": 0.242,
    "sentence-transformers/all-MiniLM-L12-v2": 0.313,
    "intfloat/e5-small-v2": 0.099,
    "thenlper/gte-small": 0.055,
    "microsoft/mpnet-base": 0.117,
    "sentence-transformers/all-mpnet-base-v2": 0.100,
    "nomic-ai/nomic-bert-2048": 0.139,
    "nomic-ai/nomic-embed-text-v1.5": 0.122,
}
# From the lowest average to the highest. These ranks of a score are -11 -7 -7 -4 -6 5 5 1 3 7 6 8 away from theirs: the
# squares add up to 480, and rho = 1 - 6 · 480/(12 · 143) = -.678, what the paper reports for MTEB (eng, v2).
BY_SOCM = sorted(PUBLISHED, key=lambda name: PUBLISHED[name])
SCORE_RANKS = dict(zip(BY_SOCM, (12, 9, 10, 8, 11, 1, 2, 7, 6, 3, 5, 4), strict=True))


@pytest.fixture
def warehouse(empty_warehouse: Path) -> Path:
    return empty_warehouse


def output(*arguments: str, warehouse: Path) -> str:
    """What the command prints, in this process."""
    given = [*arguments, "--warehouse", str(warehouse)]
    result = CliRunner().invoke(cli, given, catch_exceptions=False, standalone_mode=False)
    if result.exception:
        raise result.exception
    return result.stdout


def rows(*arguments: str, warehouse: Path) -> list[dict[str, Any]]:
    return json.loads(output(*arguments, "--format", "json", warehouse=warehouse))


def csv_file(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["checkpoint,task,score", *lines]) + "\n")
    return path


def stored(warehouse: Path) -> list[tuple[Any, ...]]:
    return run_query(warehouse, "SELECT * EXCLUDE (imported) FROM downstream_score ORDER BY ALL").rows


# ---- import ----


def test_an_import_makes_the_warehouse_and_says_what_it_read(tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse.duckdb"
    path = csv_file(tmp_path / "scores.csv", "m/a,T,0.5", "m/a,U,0.25", "m/b,T,0.75", "m/b,T,0.75")
    text = output("scores", "import", str(path), warehouse=warehouse)
    assert (
        "Read 4 scores, 1 of them repeated, of 2 checkpoints on 2 tasks from 1 file: 3 new, 0 replaced, 0 unchanged."
        in text
    )
    assert f"embaudit scores correlate --warehouse {warehouse}" in text
    assert stored(warehouse) == [
        ("m/a", "", "T", "test", "default", 0.5, None, str(path)),
        ("m/a", "", "U", "test", "default", 0.25, None, str(path)),
        ("m/b", "", "T", "test", "default", 0.75, None, str(path)),
    ]


def test_importing_again_replaces(tmp_path: Path, warehouse: Path) -> None:
    first = csv_file(tmp_path / "a.csv", "m/a,T,0.5", "m/a,U,0.25")
    output("scores", "import", str(first), warehouse=warehouse)
    before = stored(warehouse)
    text = output("scores", "import", str(first), warehouse=warehouse)
    assert "0 new, 0 replaced, 2 unchanged" in text
    assert stored(warehouse) == before
    second = csv_file(tmp_path / "b.csv", "m/a,T,0.6", "m/a,V,0.1")
    assert "1 new, 1 replaced, 0 unchanged" in output("scores", "import", str(second), warehouse=warehouse)
    assert [(row[2], row[5], Path(row[7]).name) for row in stored(warehouse)] == [
        ("T", 0.6, "b.csv"),
        ("U", 0.25, "a.csv"),
        ("V", 0.1, "b.csv"),
    ]


def test_mteb_folders_are_imported_and_listed(tmp_path: Path, warehouse: Path) -> None:
    results = tmp_path / "results"
    for name, base in (("intfloat/e5-base-v2", 0.5), ("thenlper/gte-base", 0.6)):
        place = write_mteb(results, name, {"STS12": base, "STS13": base + 0.1})
    (place / "notes.json").write_text("{}")
    text = output("scores", "import", str(results), warehouse=warehouse)
    assert "Read 4 scores, of 2 checkpoints on 2 tasks from 4 files: 4 new" in text
    assert f"Skipped {place / 'notes.json'}: not an MTEB result." in text
    put_audits(warehouse, ["/models/e5-base-v2"], [0.1])
    listed = rows("scores", "list", warehouse=warehouse)
    assert [{**row, "imported": None} for row in listed] == [
        {
            "checkpoint": name,
            "revision": REVISION,
            "tasks": 2,
            "scores": 2,
            "lowest": low,
            "highest": high,
            "imported": None,
            "audited_as": audited,
        }
        for name, low, high, audited in (
            ("intfloat/e5-base-v2", 0.5, 0.6, ["/models/e5-base-v2"]),
            ("thenlper/gte-base", 0.6, 0.7, None),
        )
    ]


def test_a_wrong_row_writes_nothing(tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse.duckdb"
    good = csv_file(tmp_path / "good.csv", "m/a,T,0.5")
    bad = csv_file(tmp_path / "bad.csv", "m/a,U,0.5", "m/a,V,inf")
    with pytest.raises(UsageError, match=r"bad.csv, line 3: the score 'inf' is not a finite number"):
        output("scores", "import", str(good), str(bad), warehouse=warehouse)
    assert not warehouse.exists()


@pytest.mark.slow
def test_thousands_of_scores_are_written_and_found_again(tmp_path: Path, warehouse: Path) -> None:
    path = csv_file(tmp_path / "many.csv", *(f"m/{i % 50},T{i // 50},{i / 10_000}" for i in range(10_000)))
    assert "10,000 new" in output("scores", "import", str(path), warehouse=warehouse)
    assert "10,000 unchanged" in output("scores", "import", str(path), warehouse=warehouse)


def test_a_warehouse_that_another_program_has_open_is_one_paragraph(
    tmp_path: Path, warehouse: Path, monkeypatch: pytest.MonkeyPatch, process: Start
) -> None:
    path = csv_file(tmp_path / "scores.csv", "m/a,T,0.5")
    output("scores", "import", str(path), warehouse=warehouse)
    code = f"import duckdb, sys; c = duckdb.connect({str(warehouse)!r}); print('open', flush=True); sys.stdin.read()"
    monkeypatch.setenv("EMBAUDIT_LOCK_WAIT_SECONDS", "0.2")
    process(code).says("open")
    with pytest.raises(WarehouseError, match="Another process has had the warehouse") as caught:
        output("scores", "import", str(path), warehouse=warehouse)
    assert caught.value.kept == "No scores were imported."
    assert caught.value.next_step.endswith("run the same command again.")


# ---- correlate ----


@pytest.fixture(scope="module")
def published(empty_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The paper's twelve checkpoints with the paper's averages, and scores on two tasks."""
    folder = tmp_path_factory.mktemp("published")
    warehouse = Path(shutil.copy(empty_once, folder))
    put_audits(warehouse, [f"{name}@main" for name in PUBLISHED], list(PUBLISHED.values()))
    lines = [f"{name},Ranked,{50 + SCORE_RANKS[name]}" for name in PUBLISHED]
    lines += [f"{name},Reversed,{-value}" for name, value in PUBLISHED.items()]
    output("scores", "import", str(csv_file(folder / "scores.csv", *lines)), warehouse=warehouse)
    return warehouse


@pytest.mark.slow
def test_rho_and_p_of_the_published_averages_are_those_by_hand(published: Path) -> None:
    squares = sum((i - SCORE_RANKS[name]) ** 2 for i, name in enumerate(BY_SOCM, start=1))
    assert squares == 480
    arguments = ("scores", "correlate", "--measure", "socm", "--corpus", "wikipedia", "--task", "Ranked")
    (row,) = rows(*arguments, warehouse=published)
    assert (row["measure"], row["corpus"], row["task"], row["checkpoints"]) == ("socm", "wikipedia", "Ranked", 12)
    assert row["rho"] == pytest.approx(1 - 6 * 480 / (12 * 143))
    assert (round(row["rho"], 3), round(row["p"], 3), row["p_method"]) == (-0.678, 0.015, "t")
    assert ("socm", "wikipedia", "Ranked", 12, -0.6783) in run_query(published, "score-correlation").rows


def test_the_sql_and_the_command_agree_on_every_row(published: Path) -> None:
    found = [row for row in rows("scores", "correlate", warehouse=published) if "average" not in row["task"]]
    in_sql = run_query(published, "score-correlation")
    assert in_sql.columns == ["measure", "corpus", "task", "checkpoints", "rho"]
    assert [(one["measure"], one["corpus"], one["task"], one["checkpoints"]) for one in found] == [
        row[:4] for row in in_sql.rows
    ]
    assert len(found) == 4
    for one, row in zip(found, in_sql.rows, strict=True):
        assert one["rho"] == pytest.approx(row[4], abs=6e-5)
    # The spread of the fixtures grows from checkpoint to checkpoint, and is that of the states that are pooled.
    by_task = {(one["measure"], one["task"]): one["rho"] for one in found}
    assert by_task["socm", "Reversed"] == pytest.approx(-1)
    ranks = [SCORE_RANKS[name] for name in PUBLISHED]
    assert by_task["spread", "Ranked"] == pytest.approx(stats.spearmanr(range(12), ranks).statistic)


def test_ties_have_their_average_rank_in_sql_too(tmp_path: Path, warehouse: Path) -> None:
    values, scored = [0.1, 0.1, 0.3, 0.4, 0.4], [1, 2, 2, 2, 9]
    put_audits(warehouse, [f"m/{i}" for i in range(5)], values)
    lines = [f"m/{i},T,{score}" for i, score in enumerate(scored)]
    output("scores", "import", str(csv_file(tmp_path / "scores.csv", *lines)), warehouse=warehouse)
    wanted = stats.spearmanr(values, scored).statistic
    (row,) = rows("scores", "correlate", "--measure", "socm", warehouse=warehouse)
    assert (row["rho"], row["p_method"]) == (pytest.approx(wanted), "exact")
    assert run_query(warehouse, "score-correlation").rows[0][4] == pytest.approx(wanted, abs=6e-5)


def test_the_table_says_how_to_read_it_and_what_was_published(published: Path) -> None:
    text = output("scores", "correlate", "--average", warehouse=published)
    assert "average of 2 tasks" in text
    assert "Ranked" not in text.split("p is two-sided")[0]
    assert "not corrected for the number of rows" in text
    assert "Published for socm: ρ = -0.678 (arXiv 2604.27398: MTEB (eng, v2), p = 0.015, n = 12)." in text
    assert "Published for spread: ρ = -0.622" in text
    assert "Warning: scores of Reversed" not in text


def test_checkpoints_that_are_left_out_are_named(tmp_path: Path, warehouse: Path) -> None:
    put_audits(warehouse, ["m/a", "m/b", "m/c"], [0.1, 0.2, 0.3])
    tables = plausible_rows("c9", "m/cls")
    audited = {name: tables[name] for name in ("checkpoint", "corpus", "pooled_stat")}
    audited["checkpoint"] = [{**audited["checkpoint"][0], "pooling": "cls", "pooling_is_mean": False}]
    put_audit(warehouse, audit_record("a9", "c9", minutes=9), audited)
    audited = {name: plausible_rows("c8", "m/length")[name] for name in ("checkpoint", "corpus")}
    put_audit(warehouse, audit_record("a8", "c8", minutes=8), audited)
    lines = [f"{name},T,{score}" for score, name in enumerate(("m/a", "m/b", "m/c", "m/cls", "m/length", "m/never"))]
    path = csv_file(tmp_path / "scores.csv", *lines, "m/a,U,1", "m/b,U,2")
    output("scores", "import", str(path), warehouse=warehouse)
    text = output("scores", "correlate", warehouse=warehouse)
    assert (
        "Left out of socm, 3 of 6 with scores: m/cls (cls pooling, which has no SOCM); m/length (no socm of its own); "
        "m/never (not audited)." in text
    )
    assert "Left out of spread, 2 of 6 with scores: m/length (no spread of its own); m/never (not audited)." in text
    assert "Without a score on U: m/c, m/cls." in text
    only = output("scores", "correlate", "--measure", "socm", "--task", "U", warehouse=warehouse)
    assert "Left out" not in only
    # Machine-readable output stays so: the names go to standard error.
    given = ["scores", "correlate", "--format", "json", "--warehouse", str(warehouse)]
    result = CliRunner().invoke(cli, given, catch_exceptions=False, standalone_mode=False)
    assert json.loads(result.stdout)
    assert "m/never (not audited)" in result.stderr


def test_scores_in_two_units_are_pointed_out(tmp_path: Path, warehouse: Path) -> None:
    put_audits(warehouse, ["m/a", "m/b", "m/c"], [0.1, 0.2, 0.3])
    path = csv_file(tmp_path / "scores.csv", "m/a,T,0.52", "m/b,T,81.3", "m/c,T,0.6")
    output("scores", "import", str(path), warehouse=warehouse)
    text = output("scores", "correlate", "--measure", "socm", warehouse=warehouse)
    assert "Warning: scores of T lie between 0.52 and 81.3: some in percent, some not?" in text


@pytest.mark.slow
def test_an_average_is_over_the_tasks_that_are_named_or_common(tmp_path: Path, warehouse: Path) -> None:
    put_audits(warehouse, [f"m/{i}" for i in range(4)], [0.1, 0.2, 0.3, 0.4])
    lines = [f"m/{i},{task},{i * weight}" for i in range(4) for task, weight in (("A", 1), ("B", -3))]
    lines += ["m/0,C,5", "m/1,C,4", "m/2,C,3"]
    output("scores", "import", str(csv_file(tmp_path / "scores.csv", *lines)), warehouse=warehouse)
    base = ("scores", "correlate", "--measure", "socm", "--average")
    (row,) = rows(*base, warehouse=warehouse)
    assert (row["task"], row["checkpoints"], row["rho"]) == ("average of 2 tasks", 4, -1)
    (row,) = rows(*base, "--task", "A", "--task", "C", warehouse=warehouse)
    assert (row["task"], row["checkpoints"], row["rho"]) == ("average of 2 tasks", 3, None)  # 2.5 each
    (row,) = rows(*base, "--task", "B", warehouse=warehouse)
    assert (row["task"], row["checkpoints"], row["rho"]) == ("average of 1 task", 4, -1)
    run = ("scores", "import", str(csv_file(tmp_path / "more.csv", "n/9,D,1")))
    output(*run, warehouse=warehouse)
    put_audits(warehouse, ["x/0", "x/1", "x/2", "x/3", "n/9"], [0.5] * 5)
    with pytest.raises(UsageError, match="No two tasks have scores for all"):
        output(*base, warehouse=warehouse)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--task", "Rankd"), "for the task Rankd. Did you mean Ranked"),
        (("--corpus", "wikipdia"), "for the corpus wikipdia. Did you mean wikipedia"),
    ],
)
def test_a_wrong_name_is_answered_with_the_nearest(published: Path, arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        output("scores", "correlate", *arguments, warehouse=published)


def test_what_is_lacking_is_said(tmp_path: Path, empty_once: Path) -> None:
    warehouse = tmp_path / "warehouse.duckdb"

    def fails() -> EmbauditError:
        with pytest.raises(EmbauditError) as caught:
            output("scores", "correlate", warehouse=warehouse)
        return caught.value

    assert "There is no warehouse" in str(fails())
    shutil.copy(empty_once, warehouse)
    put_audits(warehouse, ["m/a"], [0.1])
    assert "embaudit scores import FILE" in str(fails())
    output("scores", "import", str(csv_file(tmp_path / "scores.csv", "other/b,T,1")), warehouse=warehouse)
    assert "there are scores for other/b, audits of m/a" in str(fails())
    (tmp_path / "fresh").mkdir()
    fresh = Path(shutil.copy(empty_once, tmp_path / "fresh" / "warehouse.duckdb"))
    output("scores", "import", str(tmp_path / "scores.csv"), warehouse=fresh)
    with pytest.raises(UsageError, match=r"has no audits\. Audit the checkpoints that have scores: other/b"):
        output("scores", "correlate", warehouse=fresh)


@pytest.mark.parametrize("command", [(), ("import",), ("list",), ("correlate",)])
def test_every_help_page_explains_itself(command: tuple[str, ...]) -> None:
    page = CliRunner().invoke(cli, ["scores", *command, "--help"]).stdout
    assert len(page.split("\n")[2].strip()) > 40


# ---- published beside ours, on an audit's page ----


@pytest.mark.slow
def test_an_audits_page_has_the_published_figures_beside_ours(warehouse: Path) -> None:
    for i, source in enumerate(("packaged:tiny", "/models/all-mpnet-base-v2")):
        put_audit(warehouse, audit_record(f"a{i}", f"c{i}", minutes=i), plausible_rows(f"c{i}", source), [])
    text = output("show", "a1", "--full", warehouse=warehouse)
    title = "Published and measured (sentence-transformers/all-mpnet-base-v2, matched by name alone)"
    table = text[text.index(title) :]
    for words in ("SOCM, wikipedia", "4 texts", "0.100", "arXiv 2604.27398", "23,700", "-23,693", "+0.012"):
        assert words in table
    facts = json.loads(output("show", "a1", "--json", warehouse=warehouse))
    assert {row["measure"] for row in facts["published"]} >= {"u", "socm_mean", "reference_sticky"}
    assert "Published and measured" not in output("show", "a0", "--full", warehouse=warehouse)
