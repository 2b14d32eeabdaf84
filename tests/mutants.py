"""How many small errors in the code does `make test` notice? `make mutants` says.

mutmut changes one operator, number, name or string of a function at a time, and runs the fast tests that reach the
function (``[tool.mutmut]`` in pyproject.toml names the packages). Of tests that share a fixture mutmut knows only the
first, and it does not see calls at import: what survives is tried once more by the whole files of these tests.

The sample is the same each time; ``SAMPLE=100`` takes the first hundred of it. Three hundred take an hour or more. What
survived is shown by ``.venv/bin/mutmut show NAME``; ``mutants/`` may be deleted.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.utils.format_utils import get_mutant_name, mangled_name_from_mutant_name

REPOSITORY = Path(__file__).resolve().parent.parent
SAMPLE, SEED = int(os.environ.get("SAMPLE", "300")), 0
NOTICED = ("killed", "timeout", "segfault", "suspicious")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def every_mutant() -> list[str]:
    """The names of all mutants of the packages that pyproject.toml lists."""
    patterns = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["mutmut"]["only_mutate"]
    paths = sorted(path for pattern in patterns for path in REPOSITORY.glob(pattern) if path.suffix == ".py")
    return [
        get_mutant_name(path.relative_to(REPOSITORY), name)
        for path in paths
        for name in mutate_file_contents(str(path), path.read_text(encoding="utf-8")).mutant_names
    ]


def try_files(survivors: list[str]) -> dict[str, str]:
    """Run the files of the tests that mutmut ran, each mutant in processes of its own."""
    copy = REPOSITORY / "mutants"
    tests = json.loads((copy / "mutmut-stats.json").read_text())["tests_by_mangled_function_name"]
    files = {
        name: {test.partition("::")[0] for test in tests[mangled_name_from_mutant_name(name)]} for name in survivors
    }
    pytest = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "auto", "--dist", "loadgroup", "-m", "not slow"]

    def passes(mutant: str, chosen: set[str]) -> bool:
        environment = {**ENVIRONMENT, "MUTANT_UNDER_TEST": mutant}
        command = [*pytest, *sorted(chosen)]
        return subprocess.run(command, cwd=copy, env=environment, stdout=subprocess.DEVNULL).returncode == 0

    if survivors and not passes("", set().union(*files.values())):
        raise SystemExit("The files of these tests fail without any mutant, so they cannot tell: run `make test`.")
    return {name: "survived" if passes(name, files[name]) else "killed" for name in survivors}


def main() -> int:
    names = every_mutant()
    random.Random(SEED).shuffle(names)
    sample = set(names[:SAMPLE])
    mutmut = [sys.executable, "-m", "mutmut"]
    subprocess.run([*mutmut, "run", *sorted(sample)], cwd=REPOSITORY, env=ENVIRONMENT, check=True)
    listed = subprocess.run([*mutmut, "results", "--all", "true"], cwd=REPOSITORY, capture_output=True, text=True)
    results = dict(line.strip().split(": ", 1) for line in listed.stdout.splitlines() if ": " in line)
    results |= try_files(sorted(name for name in sample if results[name] == "survived"))
    counts = Counter(results[name] for name in sample)
    print(
        f"{SAMPLE} of {len(names):,} mutants: {sum(counts[one] for one in NOTICED) / SAMPLE:.1%} noticed.", dict(counts)
    )
    print("\n".join(f"  {results[name]}: {name}" for name in sorted(sample) if results[name] not in NOTICED))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
