"""The README's queries return what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from commands import Embaudit

README = (Path(__file__).parents[2] / "README.md").read_text()
QUERIES = [
    shlex.split(line[2:], comments=True)[2:] for line in README.split("\n") if line.startswith("$ embaudit query ")
]


@pytest.mark.usefixtures("audited_home")
def test_every_query_of_the_readme_runs(embaudit_here: Embaudit) -> None:
    assert len(QUERIES) >= 3
    for arguments in QUERIES:
        result = embaudit_here("query", *arguments)
        assert result.returncode == 0, (arguments, result.stderr)
        assert len(result.stdout.strip().split("\n")) > 2


@pytest.mark.slow
@pytest.mark.usefixtures("minilm")
def test_the_figures_under_a_query_are_those_of_the_packaged_checkpoint(embaudit: Embaudit) -> None:
    query, shown = re.findall(r'\$ embaudit query "([^"]+)" --format csv\n((?:[\w,.]+\n)+)', README)[0]
    assert embaudit("audit", "packaged:all-MiniLM-L6-v2", "--measures", "socm").returncode == 0
    assert embaudit("query", query, "--format", "csv").stdout == shown
