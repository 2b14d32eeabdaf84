"""Names: modules and files that are mentioned are there, and no two classes have one."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import embaudit

REPOSITORY = Path(__file__).parents[2]
INSTALLED_AS = {"embaudit_flows": "flows", "embaudit_tasks": "tasks", "embaudit_sql": "sql"}
MODULE = re.compile(r"(?<![\w./@-])(?:embaudit|embaudit_flows|embaudit_tasks)(?:\.[a-z]\w*)+")
FILE = re.compile(r"(?<![\w./-])(?:embaudit|flows|tasks|sql|tests|docs|benchmarks)/[\w/.-]*\w\.(?:py|md|sql|toml)\b")
IN_A_FOLDER = re.compile(r"`((?:[a-z_]+/)*[a-z_]+\.py)`")
# Examples of a stranger's package, of any measure or question; labels of runs.
EXAMPLES = (
    "NAME",
    "embaudit_norms",
    "embaudit/x.py",
    "tests/faults/test_nothing.py",
    "embaudit.audit_id",
    "embaudit.gate",
)
# What was there then.
HISTORY = "CHANGELOG.md"


def tracked() -> list[str]:
    found = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip("not a checkout")
    return [name for name in found.stdout.splitlines() if (REPOSITORY / name).is_file()]


def test_whatever_is_named_is_there() -> None:
    files = tracked()
    missing = []
    for name in files:
        if name != HISTORY and name.endswith((".py", ".md", ".toml", ".yml", ".yaml", ".sql")):
            text = (REPOSITORY / name).read_text(encoding="utf-8")
            named = [*filter(is_no_module, MODULE.findall(text)), *FILE.findall(text), *IN_A_FOLDER.findall(text)]
            missing += [
                f"{name}: {one}"
                for one in named
                if one not in files
                and not any(file.endswith(f"/{one}") for file in files)
                and not any(example in one for example in EXAMPLES)
            ]
    assert not missing


def is_no_module(name: str) -> bool:
    """Whether a dotted name leads to a package that has nothing of its next part's name."""
    package, *parts = name.split(".")
    if parts[0] in embaudit.__all__:
        return False
    place = REPOSITORY / INSTALLED_AS.get(package, package)
    for part in parts:
        if not (place / part).is_dir():
            module = (place / f"{part}.py").is_file() or any(place.glob(f"{part}.*"))
            return not (module or re.search(rf"\b{part}\b", (place / "__init__.py").read_text(encoding="utf-8")))
        place /= part
        if not (place / "__init__.py").is_file():
            return False
    return False


# ---- classes ----


ROOT = Path(__file__).parents[2]


def test_no_class_name_is_used_twice() -> None:
    modules = [path for folder in ("embaudit", "flows", "tasks") for path in (ROOT / folder).rglob("*.py")]
    names = Counter(name for path in modules for name in re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE))
    assert [name for name, count in names.items() if count > 1] == []
