"""docs/measures.md: a package that brings a measure, installed from a folder, takes part in everything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import CLI

PAGE = (Path(__file__).parents[2] / "docs/measures.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^`([\w./]+)`\n\n```\w+\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
POLICY = '[[limit]]\nsummary = "norm"\nmeasure = "norm"\nmax = 0.5\n'
Run = Callable[..., subprocess.CompletedProcess[str]]


def install(folder: Path, files: dict[str, str]) -> Path:
    """Where a package of these files is installed."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    place = folder / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(place), str(folder)], check=True, capture_output=True, timeout=300)
    return place


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert sum(content.count("\n") for content in FILES.values()) < 120
    return install(tmp_path_factory.mktemp("package"), FILES)


@pytest.fixture
def run(installed: Path, prefect_api: str, tmp_path: Path) -> Run:
    places = {"EMBAUDIT_HOME": str(tmp_path / "home"), "PREFECT_API_URL": prefect_api, "PYTHONPATH": str(installed)}

    def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*CLI, *arguments], env={**os.environ, **places}, cwd=tmp_path, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run


@pytest.mark.slow
def test_it_takes_part_in_everything(run: Run, installed: Path, tiny_checkpoint: Path, tmp_path: Path) -> None:
    assert "How long are the vectors?" in run("list", "measures").stdout
    (tmp_path / "profile.toml").write_text('name = "p"\nversion = 1\ndescription = "d"\n[norms]\ntexts = 30\n')
    (tmp_path / "policy.toml").write_text(f"[require]\nsound = false\n{POLICY}")
    audit = ("audit", str(tiny_checkpoint), "--measures", "norms", "--profile", str(tmp_path / "profile.toml"))
    said = run(*audit).stdout
    assert "Vectors of wikipedia have norms of" in said
    assert "norm [95 %]" in run("show", "--full").stdout
    gate = run("gate", "latest", "--policy", str(tmp_path / "policy.toml"), code=1)
    assert "norm" in gate.stdout
    assert run("query", "norms", "--format", "csv").stdout.splitlines()[0] == "source,corpus,norm,deviation"
    sql = """SELECT (SELECT count(*) FROM expectation_result WHERE table_name = 'norm' AND success) > 5 AS is_checked,
        (SELECT comment FROM duckdb_columns() WHERE table_name = 'norm' AND column_name = 'norm') AS meaning"""
    assert run("query", sql, "--format", "csv").stdout.splitlines()[1] == "True,Mean norm."
    page = tmp_path / "page.html"
    run("report", "latest", "--out", str(page))
    assert "Norms" in page.read_text()
    assert "Vectors of wikipedia" in page.read_text()
    run(*audit, "--seed", "1")
    tables = subprocess.run(
        [sys.executable, "-m", "embaudit.warehouse.markdown"],
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Standard deviation of the norms." in tables.stdout
    ids = run("query", "SELECT audit_id FROM audit", "--format", "csv").stdout.split()[1:]
    compared = run("compare", *ids).stdout
    assert "deviation" in compared
    assert "wikipedia" in compared


UNUSABLE = "The measure norms of the package embaudit-norms cannot be used: "
INIT = "embaudit_norms/__init__.py"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        pytest.param(
            {INIT: "import no_such_package"},
            UNUSABLE + "ModuleNotFoundError: No module named 'no_such_package'",
            id="not importable",
        ),
        pytest.param(
            {INIT: "MEASURE = 1"},
            UNUSABLE + "embaudit_norms:MEASURE is a int, not a Measure",
            id="no measure",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {INIT: FILES[INIT].replace('name="norms"', 'name="socm"')},
            UNUSABLE + "its name, 'socm', is taken",
            id="a name that is taken",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {INIT: FILES[INIT].replace('table="norm"', 'table="token"')},
            "embaudit_norms declares a table 'token', which embaudit.steps.tables has already",
            id="a table that is taken",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"embaudit_norms/queries/socm.sql": "-- Another?\nSELECT 1\n"},
            "Two queries are called socm; embaudit_norms",
            id="a query that is taken",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_one_that_cannot_be_used_is_named(changed: dict[str, str], why: str, tmp_path: Path) -> None:
    place = install(tmp_path, FILES | changed)
    places = {"EMBAUDIT_HOME": str(tmp_path / "home"), "PYTHONPATH": str(place)}
    done = subprocess.run([*CLI, "query"], env={**os.environ, **places}, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert why in done.stderr
    assert "pip uninstall embaudit" in done.stderr
    assert "Traceback" not in done.stderr
