"""``docs/faults.md``: what happened under each fault, as the tests of ``tests/faults`` saw it.

A fault test carries its name, ``@pytest.mark.fault("disk full while staging")``, and hands its observations to the
fixture ``record_fault``. ``pytest tests/faults --write-faults docs/faults.md`` writes them into the table; rows of
faults that did not run stay as they were. A plugin of ``tests/conftest.py``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "faults"
PROPERTY = "fault"
INTRODUCTION = """# Faults

What happened under each fault, as its test saw it on the tiny checkpoint; nothing here is written by hand:
`python -m pytest tests/faults --write-faults docs/faults.md`. "The same command" is the one that the fault hit.
"""
COLUMNS = {
    "fault": "fault",
    "happened": "what happened",
    "kept": "what was left",
    "afterwards": "the same command, afterwards",
    "test": "test",
}


@dataclass(frozen=True)
class Observed:
    """One row of the table."""

    fault: str
    happened: str
    kept: str
    afterwards: str
    test: str


Record = Callable[..., None]


@pytest.fixture
def record_fault(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> Iterator[Record]:
    """Takes what happened, what was left, and what the same command did afterwards; of several faults, which one."""
    marked = {mark.args[0] for mark in request.node.iter_markers("fault")}
    test = f"{request.node.path.relative_to(FOLDER.parent.parent).as_posix()}::{request.node.originalname}"
    rows: dict[str, Observed] = {}

    def record(happened: str, kept: str, afterwards: str, fault: str | None = None) -> None:
        if fault is None:
            (fault,) = marked
        rows[fault] = Observed(fault, happened, kept, afterwards, test)
        record_property(PROPERTY, asdict(rows[fault]))

    yield record
    assert rows.keys() == marked or request.session.testsfailed, f"{test} recorded {sorted(rows)} of {sorted(marked)}"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-faults", type=Path, metavar="FILE", help="write what fault tests saw into this table")


class TableWriter:
    """Collects the rows of tests that passed; with xdist, those of all workers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[str, Observed] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            for name, value in report.user_properties:
                if name == PROPERTY and isinstance(value, dict):
                    self.rows[value["fault"]] = Observed(**value)

    def pytest_sessionfinish(self) -> None:
        kept = {row.fault: row for row in read_table(self.path)} if self.path.is_file() else {}
        rows = kept | self.rows
        self.path.write_text(render(rows[name] for name in named_faults() if name in rows), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--write-faults")
    # Under xdist only the controller writes: it gets every worker's reports.
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(TableWriter(config.invocation_params.dir / path))


def named_faults() -> list[str]:
    """The faults that have a test, in the order of the files: what ``@pytest.mark.fault`` names in them."""
    names = []
    for path in sorted(FOLDER.glob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for mark in node.decorator_list if isinstance(node, ast.FunctionDef) else []:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.fault":
                    names.append(ast.literal_eval(mark.args[0]))
    return names


def render(rows: Iterable[Observed]) -> str:
    lines = ["| " + " | ".join(COLUMNS.values()) + " |", "|" + "---|" * len(COLUMNS)]
    for row in rows:
        cells = (_cell(getattr(row, name)) for name in COLUMNS)
        lines.append("| " + " | ".join(cells) + " |")
    return INTRODUCTION + "\n" + "\n".join(lines) + "\n"


def read_table(path: Path) -> list[Observed]:
    """The rows of a table that ``render`` wrote."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("| ") and not line.startswith("| fault |"):
            cells = [cell.strip().replace("\\|", "|") for cell in line.strip("|").replace(" | ", "\0").split("\0")]
            rows.append(Observed(*cells))
    return rows


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
