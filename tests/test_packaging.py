"""What the wheel carries: every package of the checkout, under its installed name, with its data files."""

from __future__ import annotations

import gc
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from embaudit.__main__ import main as entry

REPOSITORY = Path(__file__).resolve().parent.parent
INSTALLED_AS = {"embaudit": "embaudit", "flows": "embaudit_flows", "tasks": "embaudit_tasks", "sql": "embaudit_sql"}


def test_every_package_of_the_checkout_is_declared() -> None:
    declared = subprocess.run(
        [sys.executable, "-c", "import setup; print(*setup.packages())"],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    found = set()
    for folder, name in INSTALLED_AS.items():
        for path in (REPOSITORY / folder).rglob("*"):
            is_package = path.suffix in (".py", ".sql", ".toml", ".txt", ".json", ".jsonl", ".csv", ".tsv")
            if is_package and "__pycache__" not in path.parts:
                found.add(".".join((name, *path.parent.relative_to(REPOSITORY / folder).parts)))
    assert found == set(declared)
    assert len(found) == len(declared)


def test_the_lock_satisfies_what_the_project_declares() -> None:
    newest = locked("requirements.lock")
    for requirement in declared():
        version = newest[key(requirement)]
        assert requirement.specifier.contains(version), f"{requirement} is locked at {version}"


def test_the_lowest_versions_are_the_lower_bounds() -> None:
    lowest = locked("requirements-lowest.lock")
    for requirement in declared(but="dev"):
        [bound] = [each.version for each in requirement.specifier if each.operator in (">=", "==")]
        assert Version(lowest[key(requirement)]) in SpecifierSet(f"=={bound}"), f"{requirement} was tested with another"


def locked(name: str) -> dict[str, str]:
    """The versions of a lock, by name."""
    lines = (REPOSITORY / name).read_text().splitlines()
    pinned = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {key(each): next(iter(each.specifier)).version for each in pinned}


def declared(but: str = "") -> list[Requirement]:
    """What pyproject.toml asks for, with all extras but one."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras = (line for name, extra in project["optional-dependencies"].items() if name != but for line in extra)
    found = [Requirement(line) for line in (*project["dependencies"], *extras)]
    return [requirement for requirement in found if key(requirement) != "embaudit"]


def key(requirement: Requirement) -> str:
    return requirement.name.lower().replace("_", "-")


@pytest.mark.slow
def test_the_wheel_holds_flows_tasks_sql_sample_and_profiles(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(REPOSITORY)],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder, installed in INSTALLED_AS.items():
        for path in (REPOSITORY / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                name = "/".join((installed, *path.relative_to(REPOSITORY / folder).parts))
                assert name in names, f"{path} is not in the wheel"
    assert not any(name.startswith(("flows/", "tasks/", "sql/", "tests/")) for name in names)


def test_a_command_does_not_look_for_garbage_while_it_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the usual rate, that took a sixth of the time of a check."""
    rates: list[tuple[int, int, int]] = []
    monkeypatch.setattr("embaudit.cli.main.main", lambda: rates.append(gc.get_threshold()))
    usual = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    try:
        entry()
    finally:
        gc.set_threshold(*usual)
    assert rates[0][0] >= 10_000
