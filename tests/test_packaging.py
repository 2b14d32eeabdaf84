"""What the wheel carries: every package of the checkout, under its installed name, with its data files."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

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
            is_package = path.suffix in (".py", ".sql", ".toml", ".txt", ".jsonl", ".csv", ".tsv")
            if is_package and "__pycache__" not in path.parts:
                found.add(".".join((name, *path.parent.relative_to(REPOSITORY / folder).parts)))
    assert found == set(declared)
    assert len(found) == len(declared)


def test_the_lock_satisfies_what_the_project_declares() -> None:
    from packaging.requirements import Requirement

    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    lines = (REPOSITORY / "requirements.lock").read_text().splitlines()
    locked = {}
    for line in lines:
        if line and not line.startswith("#"):
            pinned = Requirement(line)
            locked[pinned.name.lower().replace("_", "-")] = next(iter(pinned.specifier)).version
    declared = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    for line in declared:
        requirement = Requirement(line)
        version = locked[requirement.name.lower().replace("_", "-")]
        assert requirement.specifier.contains(version), f"{line} is locked at {version}"


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
