"""How many small errors in the code does `make test` notice? `make mutants` says.

mutmut makes the errors, each in one operator, number, name or string of a function (``[tool.mutmut]`` in pyproject.toml
names the packages). The fast tests run once with coverage, which tells those that reach a function. Then each error is
written into a copy of the checkout, and these tests run there, the quickest first, until one fails. Coverage knows only
the first of the tests that share a fixture, so an error that nothing noticed is tried by their whole files.

The sample is the same each time; ``SAMPLE=300`` takes more of it. A hundred take about an hour and a half on two cores;
``mutants/`` keeps what the tests reached, and is to be deleted after a change of the code.
"""

from __future__ import annotations

import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from queue import Queue
from xml.etree import ElementTree

from coverage import CoverageData
from mutmut.mutation.file_mutation import MutatedFile, mutate_file_contents

REPOSITORY = Path(__file__).resolve().parent.parent
PLACE = REPOSITORY / "mutants"
SAMPLE, SEED = int(os.environ.get("SAMPLE", "100")), 0
CORES = os.cpu_count() or 1
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}
# How many times as long as they take tests may run, before a mutant counts as one that never ends.
PATIENCE = 3


@dataclass(frozen=True)
class Mutant:
    """One function of one file, written otherwise."""

    file: str
    name: str

    @property
    def function(self) -> tuple[str, ...]:
        """Its name in the file, behind that of its class if it is a method."""
        # "x_name", or "xǁClassǁname".
        return tuple(re.sub(r"__mutmut_\d+$", "", self.name)[2:].split("ǁ"))

    def written(self) -> str:
        """The file with this function in place of the original."""
        lines, mutated = source_of(self.file).splitlines(keepends=True), mutated_file(self.file)
        span = mutated.line_span_by_function_name[self.name]
        instead = mutated.code.splitlines(keepends=True)[span.start - 1 : span.end]
        own = self.function[-1]
        place = next(row for row, line in enumerate(instead) if self.name in line)
        instead[place] = instead[place].replace(self.name, own)
        first, last = lines_of(self.file, self.function)
        return "".join([*lines[: first - 1], *instead, *lines[last:]])


@cache
def source_of(file: str) -> str:
    return (REPOSITORY / file).read_text(encoding="utf-8")


@cache
def mutated_file(file: str) -> MutatedFile:
    return mutate_file_contents(str(REPOSITORY / file), source_of(file))


@cache
def lines_of(file: str, function: tuple[str, ...]) -> tuple[int, int]:
    """Its first and last line."""
    body: list[ast.stmt] = ast.parse(source_of(file)).body
    for name in function:
        found = next(
            node
            for node in body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name
        )
        body = found.body
    return found.lineno, found.end_lineno or found.lineno


def every_mutant() -> list[Mutant]:
    """All mutants of the packages that pyproject.toml lists."""
    patterns = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["mutmut"]["only_mutate"]
    paths = sorted(path for pattern in patterns for path in REPOSITORY.glob(pattern) if path.suffix == ".py")
    files = [str(path.relative_to(REPOSITORY)) for path in paths]
    return [Mutant(file, name) for file in files for name in mutated_file(file).mutant_names]


class Reached:
    """Which fast tests reach which lines, and how long they take."""

    def __init__(self) -> None:
        data, times = PLACE / "reached", PLACE / "times.xml"
        if not data.exists():
            measured = ("--cov", "--cov-context=test", "--cov-report=", f"--junitxml={times}")
            if run(REPOSITORY, "-n", "auto", "--dist", "loadgroup", *measured, COVERAGE_FILE=str(PLACE / "new")) != 0:
                raise SystemExit("These tests fail without any mutant, so they cannot tell: run `make test`.")
            (PLACE / "new").rename(data)
        self._data = CoverageData(str(data))
        self._data.read()
        self.seconds = {
            f"{case.get('classname', '').replace('.', '/')}.py::{_ungrouped(case.get('name', ''))}": float(
                case.get("time", 0)
            )
            for case in ElementTree.parse(times).iter("testcase")
        }

    def tests(self, mutant: Mutant) -> list[str]:
        """Those that reach the mutated function, the quickest first."""
        first, last = lines_of(mutant.file, mutant.function)
        contexts = self._data.contexts_by_lineno(str(REPOSITORY / mutant.file))
        # Its first line runs when the file is imported.
        reached = {name for line in range(first + 1, last + 1) for name in contexts.get(line, ())}
        found = {_ungrouped(name.rpartition("|")[0]) for name in reached} & self.seconds.keys()
        return sorted(found, key=lambda test: (self.seconds[test], test))


def _ungrouped(test: str) -> str:
    """Without the group that xdist adds to the name."""
    return test.rpartition("@")[0] or test


def run(folder: Path, *options: str, timeout: float | None = None, **variables: str) -> int:
    """Run fast tests in a checkout; returns pytest's exit code."""
    pytest = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not slow", "-p", "no:cacheprovider"]
    environment = {**ENVIRONMENT, "PYTHONPATH": str(folder), **variables}
    with (PLACE / f"{folder.name}.log").open("w") as log:
        return subprocess.run(
            [*pytest, *options], cwd=folder, env=environment, stdout=log, stderr=log, timeout=timeout
        ).returncode


def copies() -> Queue[Path]:
    """A copy of the checkout for each core."""
    files = subprocess.check_output(["git", "ls-files", "-z"], cwd=REPOSITORY, text=True).split("\0")
    found: Queue[Path] = Queue()
    for number in range(CORES):
        folder = PLACE / f"copy-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        for file in filter(None, files):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / file, folder / file)
        found.put(folder)
    if (shared := REPOSITORY.parent / "shared").exists() and not (PLACE / "shared").exists():
        (PLACE / "shared").symlink_to(shared)
    return found


def noticed_by(folder: Path, tests: Iterable[str], seconds: float) -> str | None:
    """The test that notices the mutant which was written there, or that it never ends; None if nothing does."""
    (folder / "chosen").write_text("\n".join(tests))
    try:
        code = run(folder, "-p", "no:randomly", "@chosen", timeout=PATIENCE * (60 + seconds))
    except subprocess.TimeoutExpired:
        return "timeout"
    if code not in (0, 1, 2):
        raise SystemExit(f"pytest ended with {code}: see {PLACE / folder.name}.log")
    failed = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", (PLACE / f"{folder.name}.log").read_text(), re.MULTILINE)
    return failed[1] if code and failed else None


def tried(mutant: Mutant, folder: Path, reached: Reached) -> str:
    """What becomes of a mutant: what noticed it, or why nothing did."""
    tests, place = reached.tests(mutant), folder / mutant.file
    if not tests:
        return "reached by no test"
    files = sorted({test.partition("::")[0] for test in tests})
    seconds = sum(time for test, time in reached.seconds.items() if test.partition("::")[0] in files)
    try:
        place.write_text(mutant.written(), encoding="utf-8")
        found = noticed_by(folder, tests, seconds) or noticed_by(folder, files, seconds)
    finally:
        place.write_text(source_of(mutant.file), encoding="utf-8")
    if found is None:
        return "survived"
    if found == "timeout":
        return found
    # One that fails without the mutant, too, tells nothing.
    return "noticed" if noticed_by(folder, [found], seconds) is None else f"not known: {found} fails anyway"


def main() -> int:
    names = every_mutant()
    sample = random.Random(SEED).sample(names, min(SAMPLE, len(names)))
    PLACE.mkdir(exist_ok=True)
    reached, free = Reached(), copies()

    def result(mutant: Mutant) -> str:
        folder = free.get()
        try:
            found = tried(mutant, folder, reached)
        finally:
            free.put(folder)
        print(f"  {found}: {mutant.file} {mutant.name}", flush=True)
        return found

    with ThreadPoolExecutor(CORES) as pool:
        results = dict(zip(sample, pool.map(result, sample), strict=True))
    counts = Counter(results.values())
    noticed = counts["noticed"] + counts["timeout"]
    print(f"{len(sample)} of {len(names):,} mutants: {noticed / len(sample):.1%} noticed.", dict(counts))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
