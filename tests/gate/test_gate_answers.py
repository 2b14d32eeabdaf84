"""``embaudit gate`` on answers: what an index lacks, how many copies it has, and what became of that since."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from small_audits import home_at

from embaudit.cli.main import cli

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


@pytest.mark.parametrize(
    ("policy", "of", "words"),
    [
        (WHOLE, "nowhere.parquet", "has no answer about 'nowhere.parquet'"),
        (WHOLE.replace('"absent"', '"absnt"'), "", "no such figure; vectors has absent, changed"),
        (WHOLE.replace('"vectors"', '"search"'), "", "no such figure: search was not asked"),
        (WHOLE + '[require]\nmeasures = ["sticky"]\n', "", "about audits and about answers"),
    ],
)
def test_what_is_not_there_never_passes(index: Index, policy: str, of: str, words: str) -> None:
    index.write(NAMES)
    index.ask()
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
