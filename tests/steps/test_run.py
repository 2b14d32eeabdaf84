"""A measure runs without Prefect, DuckDB and Great Expectations, and stages what it stages in an audit."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tiny import tiny_bert

from embaudit.measures import MEASURES
from embaudit.pages.write import _queries
from embaudit.words.errors import UsageError

ALONE = """
import sys
for name in ("prefect", "duckdb", "great_expectations"):
    sys.modules[name] = None
from embaudit.checkpoint import load_checkpoint
from embaudit.corpora import load_corpus
from embaudit.measures import MEASURES
from embaudit.measures.run import Run
from embaudit.measures.listed import load_profile
from embaudit.steps.corpora import stage_corpus
from embaudit.steps.results import CheckpointSpec

folder, staging, profile = sys.argv[1:]
checkpoint = load_checkpoint(folder)
spec = CheckpointSpec(reference=folder, checkpoint_id=checkpoint.checkpoint_id, device="cpu", dtype="float32")
settings = load_profile(profile)
corpora = {name: stage_corpus(load_corpus(name, "sample"), staging) for name in ("wikipedia", "msmarco")}
run = Run(spec=spec, staging=staging, seed=0, profile=settings, widths=(32, 64), corpora=corpora)
for name in ("integrity", "layers", "socm", "geometry"):
    print(name, *sorted({part.table for part in MEASURES[name].parts().measure(run) if part.rows}))
"""
PROFILE = """
name = "p"
version = 1
description = "d"
[socm]
texts = 12
[layers]
texts = 12
[geometry]
texts = 12
"""


@pytest.mark.slow
def test_measures_run_without_the_engine(tmp_path: Path) -> None:
    (tmp_path / "profile.toml").write_text(PROFILE)
    checkpoint = tiny_bert(tmp_path / "tiny")
    arguments = [str(checkpoint), str(tmp_path / "staging"), str(tmp_path / "profile.toml")]
    done = subprocess.run([sys.executable, "-c", ALONE, *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    staged = {line.split()[0]: set(line.split()[1:]) for line in done.stdout.splitlines()}
    assert {"weight", "integrity_finding"} <= staged["integrity"]
    assert {"layer_text", "layer_stat", "pooled_stat"} <= staged["layers"]
    assert {"socm_text", "socm_pair", "socm_summary"} <= staged["socm"]
    assert {"geometry", "geometry_dimension"} <= staged["geometry"]


def test_a_page_asks_nothing_under_a_name_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _queries()
    monkeypatch.setitem(MEASURES, "another", replace(MEASURES["geometry"], name="another", package="a_package"))
    with pytest.raises(UsageError, match=r"the measure another \(a_package\) takes the name 'geometry"):
        _queries()
