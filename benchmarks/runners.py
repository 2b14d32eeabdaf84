"""Two processes against one for the scan of sticky tokens, every process with one thread: what a worker is worth.

The work is the same shards through the same step, ``insert_shard``, called as a flow does (``PrefectTasks``): each
token is one encode of 33 tokens or so a draw, 22 MFLOP a token of text for all-MiniLM-L6-v2. The time is the whole
sub-flow's: starting the processes, importing torch and loading the checkpoint in each are in it.
``python -m benchmarks.runners [TOKENS]`` runs it alone with another size.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from benchmarks.measured import Measured

CHECKPOINT = "packaged:all-MiniLM-L6-v2"
TOKENS = 8_192
DRAWS = [0, 1, 2]
SHARDS = 8


def run(tokens: int = TOKENS) -> Iterator[Measured]:
    runners = {"one process": ("process", 1), "2 processes": ("process", 2)}
    if find_spec("prefect_dask") is not None:
        runners["2 Dask workers"] = ("dask", 2)
    with tempfile.TemporaryDirectory() as folder:
        seconds = {name: _timed(runner, workers, tokens, folder) for name, (runner, workers) in runners.items()}
    one = seconds.pop("one process")
    yield Measured(
        f"the scan in {SHARDS} shards ({tokens * len(DRAWS):,} encodes), one thread a process",
        f"one process {one:.0f} s; "
        + "; ".join(f"{name} {taken:.0f} s: {one / taken:.2f}×" for name, taken in seconds.items()),
        "≥ 1.7× with 2 processes on 2 cores",
    )


def _timed(runner: str, workers: int, tokens: int, folder: str) -> float:
    """One measurement in a process of its own, which is what sets the number of its threads."""
    home = Path(folder) / f"{runner}-{workers}"
    environment = {
        **os.environ,
        **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
        "EMBAUDIT_HOME": str(home),
        "EMBAUDIT_RUNNER": runner,
        "EMBAUDIT_WORKERS": str(workers),
    }
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.runners", "--scan", str(tokens)],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return float(done.stdout.split()[-1])


def _scan(tokens: int) -> float:
    """Scan the vocabulary's first tokens as the settings say; seconds of the sub-flow."""
    import torch

    from embaudit.cli.server import prepare_prefect

    prepare_prefect(show_logs=False)
    from prefect import flow

    from embaudit.corpora.load import load_corpus
    from embaudit.measures.sticky.insertion import distinct_sentences, split_sentences
    from embaudit.measures.sticky.steps.files import Sample, sentence_rows, token_shards
    from embaudit.measures.sticky.steps.scan import insert_shard
    from embaudit.measures.sticky.tables import StickyPairRow, StickySentenceRow
    from embaudit.questions.audit import AuditRequest
    from embaudit.steps.results import stage_rows
    from embaudit_flows.measure import PrefectTasks, pooled
    from embaudit_flows.plan import plan_audit

    torch.set_num_threads(1)

    @flow(name="benchmark of runners", persist_result=False)
    def scanned(plan: Any, given: dict[str, Any]) -> None:
        import numpy as np

        shards = token_shards(np.arange(2_000, 2_000 + tokens), -(-tokens // SHARDS), tokens * len(DRAWS), "scan")
        options = {"dtype": "float32", "purpose": "scoring", "draws": DRAWS}
        PrefectTasks().call_shards(insert_shard, plan.staging, shards, **options, **given)

    @flow(name="benchmarks", persist_result=False)
    def outer() -> float:
        plan = plan_audit(AuditRequest(checkpoint=CHECKPOINT, measures=["sticky"], device="cpu", dtype="float32"))
        texts = [text for pair in load_corpus("sts").pairs for text in (pair.first, pair.second)]
        scoring, _ = split_sentences(distinct_sentences(texts, 400, 0), len(DRAWS), len(DRAWS), 0)
        sample = Sample(
            sentences=stage_rows(
                plan.staging, "sticky", "benchmark", StickySentenceRow, sentence_rows("scoring", scoring)
            ),
            pairs=stage_rows(plan.staging, "sticky", "benchmark", StickyPairRow, []),
            similarity=stage_rows(plan.staging, "sticky", "benchmark", "token_similarity", [{"u": 0.2}]),
            copies=8,
            seed=0,
        )
        started = time.perf_counter()
        pooled(scanned)(plan, {"spec": plan.spec, "sample": sample})
        return time.perf_counter() - started

    return outer()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--scan"]:
        # Settings of Prefect that a command makes end with it.
        with click.Context(click.Command("scan")):
            print(_scan(int(sys.argv[2])))
    else:
        for line in run(*map(int, sys.argv[1:])):
            print(f"{line.what}: {line.found} (target {line.target})")
