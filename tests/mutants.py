"""How many small errors in the code does `make test` notice? `make mutants` says.

mutmut makes the errors, each in one operator, number, name or string of a function. The fast tests run once with
coverage, which tells those that reach a function. Then each error is written into a copy of the checkout, and these
tests run there until one fails: first those of a folder of the same name, and the quickest first. Coverage knows only
the first of the tests that share a fixture, so an error that nothing noticed is tried by the rest of their files.

The sample is the same each time; ``SAMPLE=300`` takes more of it. ``mutants/`` keeps what the tests reached and which
errors there are, and is to be deleted after a change of the code.
"""

from __future__ import annotations

import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import dropwhile
from pathlib import Path
from queue import Queue
from xml.etree import ElementTree

from coverage import CoverageData
from mutmut.mutation.file_mutation import MutatedFile, mutate_file_contents
from scipy.stats import binomtest

REPOSITORY = Path(__file__).resolve().parent.parent
PLACE = REPOSITORY / "mutants"
SAMPLE, SEED = int(os.environ.get("SAMPLE", "100")), 0
CORES = os.cpu_count() or 1
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}
# How many times as long as they take tests may run, before a mutant counts as one that never ends.
PATIENCE = 3
# SQL, and the name of an encoding.
ANY_CASE = re.compile(r"\b(SELECT|FROM|WHERE|GROUP BY|ORDER BY|INSERT INTO|UPDATE|DELETE|CREATE|ALTER)\b|utf-?8")


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

    def instead(self) -> list[str]:
        """The lines of this function in place of the original."""
        span = mutated_file(self.file).line_span_by_function_name[self.name]
        # Line by line beside the original: without the blank ones before it.
        lines = list(dropwhile(lambda line: not line.strip(), mutated_lines(self.file)[span.start - 1 : span.end]))
        place = next(row for row, line in enumerate(lines) if self.name in line)
        lines[place] = lines[place].replace(self.name, self.function[-1])
        return lines

    def written(self) -> str:
        """The file with this function in place of the original."""
        lines, (first, last) = lines_in(self.file), lines_of(self.file, self.function)
        return "".join([*lines[: first - 1], *self.instead(), *lines[last:]])

    def is_the_same(self) -> bool:
        """Whether it differs in the case of a text that reads alike in any, or in what a program does not show."""
        first, last = lines_of(self.file, self.function)
        lines = lines_in(self.file)[first - 1 : last]
        changed = [(old, new) for old, new in zip(lines, self.instead(), strict=False) if old != new]
        return all(
            (old.lower() == new.lower() and ANY_CASE.search(old)) or shown_by(old) == shown_by(new)
            for old, new in changed
        )


def shown_by(line: str) -> str:
    """A line without zip's guard, which only an error elsewhere could trip, and with one word for no (False, None)."""
    return re.sub(r",?\s*(?=\))", "", re.sub(r"\bstrict=\w+", "", re.sub(r"=(False|None)\b", "=no", line)))


@cache
def source_of(file: str) -> str:
    return (REPOSITORY / file).read_text(encoding="utf-8")


@cache
def lines_in(file: str) -> list[str]:
    return source_of(file).splitlines(keepends=True)


@cache
def mutated_file(file: str) -> MutatedFile:
    return mutate_file_contents(str(REPOSITORY / file), source_of(file))


@cache
def mutated_lines(file: str) -> list[str]:
    return mutated_file(file).code.splitlines(keepends=True)


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


def names_in(file: str) -> list[str]:
    """The mutants of a file, without those that are the same program."""
    return [name for name in mutated_file(file).mutant_names if not Mutant(file, name).is_the_same()]


def every_mutant() -> list[Mutant]:
    """All mutants of the package: a hundred thousand, so they are listed once."""
    listed = PLACE / "names.json"
    if not listed.exists():
        files = sorted(str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / "embaudit").rglob("*.py"))
        with ProcessPoolExecutor(CORES) as pool:
            names = dict(zip(files, pool.map(names_in, files, chunksize=8), strict=True))
        listed.write_text(json.dumps(names), encoding="utf-8")
    return [Mutant(file, name) for file, names in json.loads(listed.read_text()).items() for name in names]


class Reached:
    """Which fast tests reach which lines, and how long they take."""

    def __init__(self) -> None:
        data, times = PLACE / "reached", PLACE / "times.xml"
        if not data.exists():
            measured = ("--cov", "--cov-context=test", "--cov-report=", f"--junitxml={times}")
            code = run(REPOSITORY, "-n", "auto", "--dist", "loadgroup", *measured, COVERAGE_FILE=str(PLACE / "new"))
            if code not in (0, 1):
                raise SystemExit(f"pytest ended with {code}: see {PLACE / REPOSITORY.name}.log")
            (PLACE / "new").rename(data)
        self._data = CoverageData(str(data))
        self._data.read()
        self.seconds = {
            _test(case): float(case.get("time", 0))
            for case in ElementTree.parse(times).iter("testcase")
            # What fails without any mutant cannot tell.
            if case.find("failure") is None and case.find("error") is None
        }

    def tests(self, mutant: Mutant) -> list[str]:
        """Those that reach the mutated function: first those of a folder of the same name, and the quickest first."""
        first, last = lines_of(mutant.file, mutant.function)
        contexts = self._data.contexts_by_lineno(str(REPOSITORY / mutant.file))
        # Its first line runs when the file is imported. A function that is called then alone is tried by whoever uses
        # the file.
        found = self._named(contexts, range(first + 1, last + 1)) or self._named(contexts, contexts)
        parts = set(Path(mutant.file).with_suffix("").parts)
        return sorted(found, key=lambda test: (parts.isdisjoint(Path(test).parts[1:-1]), self.seconds[test], test))

    def _named(self, contexts: Mapping[int, Sequence[str]], lines: Iterable[int]) -> set[str]:
        names = {name for line in lines for name in contexts.get(line, ())}
        return {_ungrouped(name.rpartition("|")[0]) for name in names} & self.seconds.keys()


def _test(case: ElementTree.Element) -> str:
    """A test's name from its module, that of its class if it is in one, and its own."""
    module = case.get("classname", "").split(".")
    own = [module.pop()] if module[-1].startswith("Test") else []
    return "::".join([f"{'/'.join(module)}.py", *own, _ungrouped(case.get("name", ""))])


def _ungrouped(test: str) -> str:
    """Without the group that xdist adds to the name."""
    return test.rpartition("@")[0] or test


def run(folder: Path, *options: str, timeout: float | None = None, **variables: str) -> int:
    """Run fast tests in a checkout; returns pytest's exit code."""
    pytest = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
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


def failed_of(folder: Path, tests: Sequence[str], *options: str, seconds: float = 3600) -> list[str]:
    """The tests that fail there as it is."""
    (folder / "chosen").write_text("\n".join(tests))
    if not run(folder, "-p", "no:randomly", *options, "@chosen", timeout=PATIENCE * (60 + seconds)):
        return []
    log = (PLACE / f"{folder.name}.log").read_text()
    failed = re.findall(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", log, re.MULTILINE)
    # What tests are made of may be gone, or pytest itself cannot begin.
    failed += re.findall(rf"^ERROR: not found: {re.escape(str(folder))}/(.*)$", log, re.MULTILINE)
    return failed or [tests[0]]


def noticed_by(mutant: Mutant, folder: Path, reached: Reached) -> str | None:
    """The test that notices a mutant, or that it never ends; None if nothing does."""
    tests, place = reached.tests(mutant), folder / mutant.file
    files = {test.partition("::")[0] for test in tests}
    others = [test for test in reached.seconds if test.partition("::")[0] in files and test not in set(tests)]
    try:
        place.write_text(mutant.written(), encoding="utf-8")
        for some in filter(None, (tests, others)):
            if failed := failed_of(folder, some, "-x", seconds=sum(reached.seconds[test] for test in some)):
                return failed[0]
    except subprocess.TimeoutExpired:
        return "timeout"
    finally:
        place.write_text(source_of(mutant.file), encoding="utf-8")
    return None


def main() -> int:
    PLACE.mkdir(exist_ok=True)
    names = every_mutant()
    sample = random.Random(SEED).sample(names, min(SAMPLE, len(names)))
    reached, free = Reached(), copies()

    def tried(mutant: Mutant) -> str | None:
        folder = free.get()
        try:
            found = noticed_by(mutant, folder, reached)
        finally:
            free.put(folder)
        print(f"  {mutant.file} {mutant.name}: {found or 'survived'}", flush=True)
        return found

    with ThreadPoolExecutor(CORES) as pool:
        found = list(pool.map(tried, sample))
    # One that fails without the mutant, too, tells nothing.
    by = {test for test in found if test and test != "timeout"}
    for test in (failing := failed_of(free.get(), sorted(by))):
        print(f"  fails anyway: {test}")
    noticed = [test for test in found if test and test not in failing]
    low, high = binomtest(len(noticed), len(sample)).proportion_ci(method="wilson")
    print(f"{len(noticed)} of {len(sample)} noticed: {len(noticed) / len(sample):.0%} [{low:.0%}, {high:.0%}]", end=" ")
    print(f"of {len(names):,} mutants.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
