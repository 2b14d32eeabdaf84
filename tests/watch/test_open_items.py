"""Tripped gates and worse figures stay open until checkpoint or policy change or somebody accepts them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from plausible import audit_record, plausible_rows
from ready_warehouses import put_audit
from some_rows import mostly_slow
from test_watch_flow import SETTINGS, Put, Watcher, watcher  # noqa: F401  (a fixture)

from embaudit.cli.main import cli
from embaudit.pages.index import index_page, read_index
from embaudit.system.settings import warehouse_at
from embaudit.watch.happening import NightProblem
from embaudit.watch.open_items import gate_outcome, read_open
from embaudit.words.errors import UsageError

RULE = '[[limit]]\nname = "{name}"\nsummary = "socm_summary"\nmeasure = "socm_mean"\nmax = {most}\n'
TABLES = ("gate_result", "regression", "watched_revision", "audit_backbone")


@pytest.fixture(scope="module")
def open_once(empty_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = Path(shutil.copy(empty_once, tmp_path_factory.mktemp("open") / "warehouse.duckdb"))
    put_audit(place, audit_record("a1", "c1"), {**plausible_rows("c1", "owner/x"), **{name: [] for name in TABLES}})
    rows = {**plausible_rows("c2", "owner/x"), "watched_revision": [], "audit_backbone": []}
    rows["gate_result"] = [{**row, "audit_id": "a2"} for row in rows["gate_result"]]
    rows["regression"] = [{**row, "audit_id": "a2", "predecessor_audit_id": "a1"} for row in rows["regression"]]
    put_audit(place, audit_record("a2", "c2", minutes=1), rows)
    return place


@pytest.fixture
def warehouse(open_once: Path, tmp_path: Path) -> Path:
    """The second revision of a model trips its gate and is worse than the first."""
    return Path(shutil.copy(open_once, tmp_path / "warehouse.duckdb"))


def accept(warehouse: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["accept", *words, "--warehouse", str(warehouse)])


def still_open(warehouse: Path) -> list[str]:
    return [str(item) for item in read_open(warehouse, ["a2"], 0)]


@pytest.mark.parametrize("name", ["owner/x", "a2"])
def test_all_that_is_open_is_accepted_by_name(warehouse: Path, name: str) -> None:
    found = still_open(warehouse)
    assert {item.split(":")[0] for item in found} == {"got worse", "policy release"}
    done = accept(warehouse, name, "--reason", "known", "--by", "me")
    assert done.exit_code == 0, done.exception
    assert done.output.splitlines() == [f"Accepted, audit a2: {item}" for item in found]
    assert still_open(warehouse) == []
    again = accept(warehouse, name, "--reason", "known", "--by", "me")
    assert isinstance(again.exception, UsageError)
    assert "Nothing is open" in str(again.exception)


def test_one_rule_is_accepted_and_the_rest_stays_open(warehouse: Path) -> None:
    first, *others = read_open(warehouse, ["a2"], 0)
    assert accept(warehouse, "owner/x", first.item, "--reason", "r", "--by", "me").exit_code == 0
    assert still_open(warehouse) == [str(item) for item in others]


@pytest.mark.parametrize(
    ("words", "said"),
    mostly_slow(
        [
            (("owner/y", "--reason", "r"), "has no audit 'owner/y'"),
            (("a1", "--reason", "r"), "Nothing is open for a1"),
            (("owner/x", "no such rule", "--reason", "r"), "Nothing called 'no such rule' is open"),
            (("owner/x",), "--reason"),
        ],
        1,
    ),
)
def test_what_cannot_be_accepted_is_said(warehouse: Path, words: tuple[str, ...], said: str) -> None:
    before = still_open(warehouse)
    result = accept(warehouse, *words)
    assert result.exit_code != 0
    assert said in f"{result.output} {result.exception}"
    assert still_open(warehouse) == before


def test_the_index_shows_what_is_open_until_it_is_accepted(warehouse: Path) -> None:
    def said() -> tuple[bool, Any, set[Any]]:
        page = index_page(read_index(warehouse_at(str(warehouse)), warehouse.parent))
        parts = {section.title: section.parts[0] for section in page.sections}
        checkpoints, worse = (parts[title].records() for title in ("Checkpoints", "What got worse"))  # type: ignore[union-attr]
        is_tripped = "The gate tripped for 1 checkpoint: owner/x." in [finding.sentence for finding in page.findings]
        return is_tripped, checkpoints[0]["gate"], {row["accepted by"] for row in worse}

    assert said() == (True, "tripped", {None})
    accept(warehouse, "owner/x", "--reason", "r", "--by", "me")
    assert said() == (False, "accepted", {"me"})


def test_a_page_says_who_accepted_a_tripped_gate(warehouse: Path) -> None:
    def first() -> str:
        shown = CliRunner().invoke(cli, ["show", "a2", "--warehouse", str(warehouse)])
        return " ".join(shown.output.split())

    assert "Accepted by" not in first()
    accept(warehouse, "a2", "--reason", "an old model", "--by", "me")
    assert "Accepted by me: an old model." in first()


def test_a_gate_counts_for_the_version_of_the_policy_that_judged_last(warehouse: Path) -> None:
    ((policy_hash,),) = {(row["policy_hash"],) for row in plausible_rows()["gate_result"]}
    assert gate_outcome(warehouse, "a2", policy_hash, 0) == "tripped"
    assert gate_outcome(warehouse, "a2", "another", 0) is None
    assert gate_outcome(warehouse, "a1", policy_hash, 0) is None


@pytest.mark.slow
def test_a_red_night_does_not_turn_green_by_itself(watcher: Watcher, put: Put) -> None:  # noqa: F811
    folder, policy = put(watcher.folder / "model", 0), watcher.folder / "release.toml"
    watcher.write('[[folder]]\npath = "model"', SETTINGS + 'policy = "release.toml"\n')
    policy.write_text(RULE.format(name="strict", most=0.0))

    def red() -> NightProblem:
        night = watcher.red("Gate tripped")
        assert "policy release: strict" in night.happened
        assert night.outcome.summary.startswith("1 problem: Gate tripped: ")
        assert "open-items" in night.next_step
        return night

    first, second = red().outcome, red().outcome
    assert [first.rows[0].outcome, second.rows[0].outcome] == ["audited", "seen"]
    assert [problem.name for problem in (*first.problems, *second.problems)] == ["tripped", "tripped"]
    assert second.rows[0].open_since is not None
    assert watcher.ask("SELECT count(*) FROM audit") == [(1,)]

    policy.write_text(RULE.format(name="strict", most=2.0))
    assert watcher.watch().rows[0].gate == "passed", "another policy"
    policy.write_text(RULE.format(name="strict", most=0.0))
    red()
    done = accept(watcher.warehouse, str(folder), "--reason", "an old model", "--by", "me")
    assert done.exit_code == 0, done.exception
    green = watcher.watch()
    assert (green.rows[0].gate, green.rows[0].open) == ("accepted", [])
    put(folder, 1)
    red()

    # A broken copy says nothing about what is served: the last one that was seen stays open.
    (folder / "tokenizer.json").rename(folder / "tokenizer.gone")
    assert [one.name for one in watcher.red("Gate tripped").outcome.problems] == ["tripped", "checkpoint_unreadable"]
    (folder / "tokenizer.gone").rename(folder / "tokenizer.json")
    watcher.write('[[folder]]\npath = "model"', SETTINGS + 'policy = "release.toml"\ngate = "mark"\n')
    assert watcher.watch().marked, "marked, and the run goes on"
    put(watcher.folder / "other", 2)
    watcher.write(
        '[[folder]]\npath = "model"\n[[folder]]\npath = "other"\nsettings = { corpora = { wikipedia = "none.txt" } }',
        SETTINGS + 'policy = "release.toml"\n',
    )
    both = watcher.red("Gate tripped")
    assert [problem.name for problem in both.outcome.problems] == ["tripped", "audit_failed"]
    assert both.exit_code == 2, "one could not be looked at"
