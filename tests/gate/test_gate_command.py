"""``embaudit gate`` on a small warehouse: which audit is meant, what it is compared with, and how the command ends."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from plausible import audit_record, expectation, measure_runs, plausible_rows
from ready_warehouses import put_audit
from small_audits import home_at

from embaudit.cli.main import cli
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.gate import load_policy, run_gate
from embaudit.warehouse.gate.policy import FIGURES
from embaudit.words.errors import CheckFailed, EmbauditError, UsageError, WarehouseError

POLICY = """
[require]
measures = ["sticky", "socm"]
[[severity]]
name = "no strong token"
at_least = "strong"
most = {most}
reason = "they hurt"
[[change]]
name = "worst loss"
summary = "sticky_token"
measure = "worst_loss"
max_increase = {rise}
[[limit]]
summary = "socm_summary"
measure = "socm_mean"
max = 2.0
"""


@pytest.fixture(scope="module")
def warehouse(empty_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two revisions of one source, the later with slopes .2 lower (its losses are .2/.785 higher); a failed audit."""
    path = Path(shutil.copy(empty_once, tmp_path_factory.mktemp("gate") / "warehouse.duckdb"))
    for audit_id, checkpoint, shift, minutes in (("abc1", "c1", 0.2, 0), ("abd2", "c2", 0.0, 10)):
        record = audit_record(audit_id, checkpoint, minutes=minutes)
        record = replace(record, settings={**record.settings, "source": "owner/[model]"})
        rows = {**plausible_rows(checkpoint, "owner/[model]", shift), "gate_result": []}
        failed = expectation("sticky_summary", success=False, severity="warning")
        put_audit(path, record, rows, measure_runs(), [expectation(), failed])
    put_audit(path, audit_record("dead", "c1", "failed", "a check", minutes=20), {}, [])
    return path


def policy_file(folder: Path, *, most: int = 1, rise: float = 0.3) -> Path:
    path = folder / "release.toml"
    path.write_text(POLICY.format(most=most, rise=rise))
    return path


def ask(warehouse: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["gate", *arguments, "--warehouse", str(warehouse)])


def test_figures_that_rules_can_name_are_those_of_the_view(warehouse: Path) -> None:
    with open_reader(warehouse) as connection:
        found = connection.execute("SELECT DISTINCT summary, measure FROM summary_cell").fetchall()
        sql = "SELECT count(*), count(value) FROM {} WHERE audit_id = 'abc1'"
        cells, filled = connection.execute(sql.format("summary_cell")).fetchone() or (0, 0)
        assert connection.execute(sql.format("summary_figure")).fetchone() == (filled, filled)
    assert cells > filled > 0, "the cells are there even where they are null"
    assert {(summary, measure) for summary, measures in FIGURES.items() for measure in measures} == set(found)


def test_it_passes_with_exit_code_0_and_says_what_passed(warehouse: Path, tmp_path: Path) -> None:
    result = ask(warehouse, "latest", "--policy", str(policy_file(tmp_path)))
    assert result.exit_code == 0, result.output
    assert "Gate passed: 5 rules of the policy release" in result.output
    assert "owner/[model]" in result.output, "brackets of a name are no markup"


def test_it_trips_with_exit_code_1_and_a_table(warehouse: Path, tmp_path: Path) -> None:
    result = ask(warehouse, "abd2", "--policy", str(policy_file(tmp_path, most=0, rise=0.25)))
    assert result.exit_code == 1, result.output
    table = result.output
    for word in ("no strong token", "they hurt", "龸", "worst loss", "tripped", "against audit abc1"):
        assert word in table
    assert table.index("worst loss") < table.index("limit on socm_summary.socm_mean"), "what tripped comes first"
    assert "Gate tripped: 2 of 5 rules" in table
    # The tokens were validated in bfloat16, which the plausible audits say of both.
    assert "Not all in float32: worst loss, no strong token (in bfloat16)." in " ".join(table.split())


def test_json_has_every_finding_with_its_figures(warehouse: Path, tmp_path: Path) -> None:
    result = ask(warehouse, "latest", "--policy", str(policy_file(tmp_path, most=0, rise=0.25)), "--json")
    said = json.loads(result.output)
    assert (result.exit_code, said["outcome"], said["tripped"]) == (1, "tripped", 2)
    assert (said["audit_id"], said["baseline_audit_id"], said["source"]) == ("abd2", "abc1", "owner/[model]")
    (change,) = [finding for finding in said["findings"] if finding["kind"] == "change"]
    # Slopes of .30 and .50 of the control's .785.
    assert change["value"] == pytest.approx(1 - 0.3 / 0.785)
    assert change["baseline_value"] == pytest.approx(1 - 0.5 / 0.785)
    assert change["highest"] == pytest.approx(1 - 0.5 / 0.785 + 0.25)
    assert change["change"] == pytest.approx(0.2 / 0.785)


def test_the_first_audit_of_a_source_has_no_previous_one(warehouse: Path, tmp_path: Path) -> None:
    policy = policy_file(tmp_path)
    first = run_gate(warehouse, "abc1", load_policy(policy))
    assert first.baseline_audit_id is None
    assert [finding.observed for finding in first.tripped] == ["no baseline to compare with"]
    policy.write_text('no_baseline = "warn"\n' + policy.read_text())
    second = run_gate(warehouse, "abc1", load_policy(policy))
    assert second.outcome == "passed"
    assert len(second.warnings) == 1
    assert "1 missing (warning only)" in second.headline


def test_another_baseline_can_be_named(warehouse: Path, tmp_path: Path) -> None:
    loaded = load_policy(policy_file(tmp_path, rise=0.0))
    backwards = run_gate(warehouse, "abc1", loaded, baseline="abd")
    assert (backwards.baseline_audit_id, backwards.outcome) == ("abd2", "passed"), "the loss went down"
    with pytest.raises(UsageError, match="its own baseline"):
        run_gate(warehouse, "abc1", loaded, baseline="abc1")
    with pytest.raises(UsageError, match="no audit 'zz'"):
        run_gate(warehouse, "abc1", loaded, baseline="zz")


@pytest.mark.parametrize(
    ("audit", "error", "words"),
    [
        ("zzzz", UsageError, "no audit 'zzzz'"),
        ("", UsageError, "no audit ''"),
        ("ab", UsageError, "2 audits begin with ab: abc1, abd2"),
        ("dead", CheckFailed, "is failed"),
        ("%", UsageError, "no audit '%'"),
        ("abc1'; DROP TABLE audit; --", UsageError, "no audit"),
    ],
)
def test_an_audit_that_is_not_meant_by_one_word_is_refused(
    warehouse: Path, tmp_path: Path, audit: str, error: type[EmbauditError], words: str
) -> None:
    with pytest.raises(error) as caught:
        run_gate(warehouse, audit, load_policy(policy_file(tmp_path)))
    assert words in caught.value.happened


def test_failed_warnings_and_the_sample_are_seen(warehouse: Path, tmp_path: Path) -> None:
    path = tmp_path / "strict.toml"
    path.write_text("[require]\nreal_corpora = true\nmost_failed_warnings = 0\n")
    verdict = run_gate(warehouse, "latest", load_policy(path))
    assert {finding.rule: finding.observed for finding in verdict.tripped} == {
        "real corpora": "sts, wikipedia",
        "failed warnings": "sticky_summary.token_id",
    }
    assert verdict.baseline_audit_id is None, "nothing is compared, so there is nothing to look for"


def test_a_warehouse_that_is_not_there_or_has_no_audit_is_one_paragraph(tmp_path: Path, empty_once: Path) -> None:
    loaded = load_policy(policy_file(tmp_path))
    with pytest.raises(WarehouseError, match="no warehouse"):
        run_gate(tmp_path / "none.duckdb", "latest", loaded)
    with pytest.raises(UsageError, match="no published audit"):
        run_gate(empty_once, "latest", loaded)


# ---- ``embaudit gate`` on answers: what an index lacks, how many copies it has, and what became of that since ----


NAMES = [f"doc-{number}" for number in range(40)]
WHOLE = """
[[limit]]
name = "nothing is absent"
summary = "vectors"
measure = "absent"
max = 0
reason = "Users are promised every document."
"""
STEADY = """
[[change]]
name = "no rows go"
summary = "vectors"
measure = "rows"
max_decrease = 2
"""


class Index:
    """A store of some documents, and what ``vectors`` was asked of it, kept."""

    def __init__(self, folder: Path) -> None:
        self.place, self.list, self.folder = folder / "index.parquet", folder / "expected.txt", folder
        self.list.write_text("\n".join(NAMES))

    def write(self, names: Sequence[str]) -> None:
        rows = {
            "id": list(names),
            "text": [f"the river and the stone of {name}" for name in names],
            "vector": list(np.random.default_rng(0).normal(size=(len(names), 8)).astype(np.float32)),
        }
        pq.write_table(pa.table(rows), self.place)

    def ask(self, *options: str) -> int:
        given = options or ("--expected", str(self.list))
        arguments = ["vectors", str(self.place), *given, "--keep"]
        result = CliRunner().invoke(cli, arguments, standalone_mode=False)
        assert "Kept as answer" in result.output, result.output
        return int(result.return_value)

    def gate(self, policy: str, *options: str, of: str = "") -> tuple[int, dict[str, Any], str]:
        file = self.folder / "policy.toml"
        file.write_text(policy)
        result = CliRunner().invoke(cli, ["gate", of or str(self.place), "--policy", str(file), "--json", *options])
        said = json.loads(result.stdout) if result.stdout.startswith("{") else {}
        return result.exit_code, said, f"{result.output} {result.exception}"


@pytest.fixture
def index(tmp_path: Path, empty_once: Path) -> Iterator[Index]:
    with home_at(tmp_path / "home", empty_once):
        yield Index(tmp_path)


def test_a_policy_limits_what_an_index_may_lack(index: Index) -> None:
    index.write(NAMES)
    assert index.ask() == 0
    code, said, _ = index.gate(WHOLE)
    assert (code, said["outcome"], said["is_of_answers"], said["source"]) == (0, "passed", True, str(index.place))

    index.write(NAMES[:37])
    assert index.ask() == 1
    code, said, _ = index.gate(WHOLE)
    (tripped,) = said["findings"]
    assert (code, tripped["value"], tripped["highest"], tripped["trips"]) == (1, 3.0, 0.0, True)
    shown = CliRunner().invoke(
        cli, ["gate", str(index.place), "--policy", str(index.folder / "policy.toml")], env={"COLUMNS": "200"}
    )
    assert "on answer" in shown.output
    assert "Users are promised every document." in shown.output


def test_a_change_is_one_of_content_and_not_of_nights(index: Index) -> None:
    index.write(NAMES)
    index.ask()
    code, said, _ = index.gate(STEADY)
    assert (code, said["findings"][0]["observed"]) == (1, "no baseline to compare with")
    assert index.gate('no_baseline = "warn"\n' + STEADY)[0] == 0

    index.write(NAMES[:38])
    index.ask()
    code, said, _ = index.gate(STEADY)
    assert (code, said["findings"][0]["change"]) == (0, -2.0)
    index.write(NAMES[:35])
    index.ask()
    # A second night on which nothing changes does not make it right.
    index.ask()
    code, said, _ = index.gate(STEADY)
    assert (code, said["findings"][0]["value"], said["findings"][0]["baseline_value"]) == (1, 35.0, 38.0)

    # Any answer can be named, by its first digits, and be a baseline.
    earlier = said["baseline_audit_id"]
    assert index.gate(STEADY, of=earlier[:10])[1]["audit_id"] == earlier
    assert index.gate(STEADY, "--baseline", earlier)[1]["findings"][0]["baseline_value"] == 38.0
    assert "cannot be its own baseline" in index.gate(STEADY, "--baseline", str(index.place))[2]


def test_questions_of_one_kind_are_told_apart(index: Index) -> None:
    index.write(NAMES[:37])
    index.ask()
    index.ask("--fewest-rows", "10")
    rows = '[[limit]]\nsummary = "vectors"\nmeasure = "rows"\nmin = 30\n'
    _, said, _ = index.gate(rows)
    items = [finding["item"] for finding in said["findings"]]
    assert len(set(items)) == 2
    assert all(item.startswith("(question ") for item in items)
    # Each is the newest answer to its question, and can be asked about alone.
    key = items[0].removeprefix("(question ").removesuffix(")")
    assert len(index.gate(rows, of=key)[1]["findings"]) == 1


def test_what_is_not_there_never_passes(index: Index) -> None:
    index.write(NAMES)
    index.ask()
    for policy, of, words in (
        (WHOLE, "nowhere.parquet", "has no answer about 'nowhere.parquet'"),
        (WHOLE.replace('"absent"', '"absnt"'), "", "no such figure; vectors has absent, changed"),
        (WHOLE.replace('"vectors"', '"search"'), "", "no such figure: search was not asked"),
        (WHOLE + '[require]\nmeasures = ["sticky"]\n', "", "about audits and about answers"),
    ):
        code, _, printed = index.gate(policy, of=of)
        assert code != 0
        assert words in " ".join(printed.split())


def test_a_level_that_is_forbidden_needs_no_figure(index: Index) -> None:
    strict = '[require]\nno_finding = "problem"\n'
    index.write(NAMES)
    index.ask()
    assert index.gate(strict)[0] == 0
    index.write(NAMES[:37])
    index.ask()
    assert "no published audit" in index.gate(strict, of="latest")[2], "by latest, an audit is meant"
    code, said, _ = index.gate(strict)
    assert code == 1
    assert "vectors.absent_rows" in said["findings"][-1]["observed"]
