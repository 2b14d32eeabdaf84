"""``docs/faults.md`` and the tests of the faults name the same things."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fault_table import FOLDER, Observed, named_faults, read_table, render

from embaudit.cli.main import STAGING_COMMANDS, cli, report_interrupt

TABLE = FOLDER.parent.parent / "docs" / "faults.md"


def test_the_committed_table_has_a_row_for_every_fault_that_is_tested_and_no_other() -> None:
    table = read_table(TABLE)
    assert [row.fault for row in table] == named_faults()
    assert len(set(named_faults())) == len(table) >= 12
    assert TABLE.read_text(encoding="utf-8") == render(table), "it was edited by hand"


def test_every_row_names_a_test_that_is_there() -> None:
    for row in read_table(TABLE):
        path, name = row.test.split("::")
        assert f"def {name}(" in (FOLDER.parent.parent / path).read_text(encoding="utf-8")
        assert row.happened
        assert row.kept
        assert row.afterwards


def test_a_table_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    rows = [Observed("a | b", "code 2: x", "y", "z\nz", "t::u"), Observed("c", "d", "e", "f", "g::h")]
    path = tmp_path / "table.md"
    path.write_text(render(rows))
    assert read_table(path) == [Observed("a | b", "code 2: x", "y", "z z", "t::u"), rows[1]]


def test_a_run_writes_what_its_tests_saw_and_keeps_the_other_rows(tmp_path: Path) -> None:
    """A pytest of its own, over one fault that does nothing."""
    folder = tmp_path / "tests" / "faults"
    folder.mkdir(parents=True)
    (folder.parent / "fault_table.py").write_text((FOLDER.parent / "fault_table.py").read_text())
    (folder.parent / "conftest.py").write_text('pytest_plugins = ["fault_table"]\n')
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = fault(name): one\n")
    (folder / "test_nothing.py").write_text(
        "import pytest\n"
        '@pytest.mark.fault("nothing")\n'
        'def test_nothing(record_fault):\n    record_fault("this", "that", "those")\n'
        '@pytest.mark.fault("never run")\n'
        "def test_other():\n    raise AssertionError\n"
        '@pytest.mark.fault("unsaid")\n'
        "def test_unsaid(record_fault):\n    pass\n"
    )
    table = tmp_path / "faults.md"
    table.write_text(render([Observed("never run", "a", "b", "c", "d::e"), Observed("gone", "a", "b", "c", "d::e")]))
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--write-faults", str(table), str(folder)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 2 passed, 1 error" in result.stdout or "1 failed, 2 passed" in result.stdout, result.stdout
    found = {row.fault: row for row in read_table(table)}
    assert found["nothing"] == Observed(
        "nothing", "this", "that", "those", "tests/faults/test_nothing.py::test_nothing"
    )
    assert found["never run"].happened == "a"
    assert "gone" not in found


# ---- what Ctrl-C says: of staged steps only after a command that stages some ----


@pytest.mark.parametrize("command", sorted(cli.commands))
def test_only_commands_that_stage_speak_of_steps(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["embaudit", command, "something"])
    assert report_interrupt() == 130
    said = capsys.readouterr().err
    assert "Interrupted." in said
    assert ("Run the same command again" in said) is (command in STAGING_COMMANDS)


def test_the_commands_that_stage_are_there() -> None:
    assert set(cli.commands) >= STAGING_COMMANDS
