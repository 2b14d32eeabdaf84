"""Nights of questions on a real server: rows gone, recall lowered, a golden query lost, an endpoint exchanged.

What is asked stands on a watch list, a worker takes each night, and what happens between the nights is what happens to
people: each is red once it is wrong, named, and red until somebody accepts it or it is mended.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ports import free_port
from site_of_ones_own import Site, commands_under, new_site, wait_until
from tiny import tiny_bert

from benchmarks.serving.faults import faithful
from benchmarks.serving.server import Served, serving
from embaudit.api.reading import open_warehouse
from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint

pytestmark = pytest.mark.slow

LIST = """
[settings]
device = "cpu"

[[vectors]]
store = "index.parquet"
function = "model"
with_explanation = false

[[search]]
store = "graph.faiss"
count = 100
rows = 100
recall = 0.3

[[why]]
store = "index.parquet"
function = "model"
golden = "golden.csv"
k = 3

[[parity]]
checkpoint = "model"
other = "{address}"
"""
TEXTS = [f"the {name} of the old river in winter" for name in (f"stone {number}" for number in range(60))]
# What each question is called when it is red, by what was asked.
RED = {
    "index.parquet": {"rows lost", "lost"},
    "graph.faiss": {"recall fell"},
    "an endpoint": {"another function"},
}


def put_index(folder: Path, rows: int) -> None:
    encoder = Encoder(load_checkpoint(str(folder / "model"), LoadOptions(device="cpu")))
    vectors = np.asarray(encoder.encode_texts(TEXTS[:rows]), np.float32)
    ids = [f"chunk-{number}" for number in range(rows)]
    pq.write_table(pa.table({"id": ids, "text": TEXTS[:rows], "vector": list(vectors)}), folder / "index.parquet")


def put_graph(folder: Path, effort: int) -> None:
    graph = faiss.IndexHNSWFlat(24, 16)
    graph.add(np.random.default_rng(0).normal(size=(2_000, 24)).astype(np.float32))
    graph.hnsw.efSearch = effort
    faiss.write_index(graph, str(folder / "graph.faiss"))


def night(site: Site) -> dict[str, Any]:
    """Let a worker take a night; its run."""
    before = {run["id"] for run in runs(site)}
    site.shell("prefect deployment run watch/nightly --watch || true")
    (run,) = [run for run in runs(site) if run["id"] not in before]
    return run


def runs(site: Site) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = site.ask("flow_runs/filter", {"flows": {"name": {"any_": ["watch"]}}})
    return [run for run in found if run["state_type"] not in ("SCHEDULED",)]


def test_nights_of_questions(tmp_path: Path) -> None:
    home = tmp_path / ".embaudit"
    home.mkdir()
    right = load_checkpoint(str(tiny_bert(home / "model")), LoadOptions(device="cpu"))
    other = load_checkpoint(str(tiny_bert(tmp_path / "other", seed=1)), LoadOptions(device="cpu"))
    (home / "golden.csv").write_text(f"query,expect\n{TEXTS[7]},chunk-7\n{TEXTS[59]},chunk-59\n")
    put_index(home, 60)
    put_graph(home, 300)
    served = Served(faithful(right))
    with serving(served) as address, new_site(tmp_path, free_port()) as site:
        (home / "watch.toml").write_text(LIST.format(address=address))
        server, configure, set_up, deploy, worker = commands_under("One machine: five commands")[:5]
        site.start(server, "server.log")
        wait_until(lambda: site.ask("health"), 240)
        for command in (configure, set_up, deploy):
            site.shell(command)
        site.start(worker, "worker.log")

        assert night(site)["state_name"] == "Completed"

        put_index(home, 50)
        put_graph(home, 10)
        served.encode = faithful(other)
        for _ in range(2):
            red = night(site)
            assert red["state_type"] == "FAILED", red["state"]["message"]
            assert red["state"]["message"].startswith("4 problems.")
        warehouse = open_warehouse(home / "warehouse.duckdb")
        (problems,) = warehouse.query("SELECT problems FROM watch_run ORDER BY started DESC LIMIT 1")["problems"]
        told = json.loads(problems) if isinstance(problems, str) else problems
        assert {problem["state"] for problem in told} >= {"Rows lost", "Recall fell", "Not found"}
        open_now = warehouse.query(
            "SELECT \"against\", item FROM found_item WHERE what = 'answer' AND accepted IS NULL"
        )
        found: dict[str, set[str]] = {}
        for row in open_now.to_dict("records"):
            name = "an endpoint" if row["against"] == address else Path(row["against"]).name
            found.setdefault(name, set()).add(row["item"].split(": ", 1)[1])
        assert found == RED

        # One is accepted, and the others are mended.
        accept = f"embaudit accept {home}/graph.faiss --reason 'a smaller machine' --by me"
        site.shell(f"{accept} --warehouse {home}/warehouse.duckdb")
        put_index(home, 60)
        served.encode = faithful(right)
        green = night(site)
        assert green["state_name"] == "Completed", green["state"]["message"]

        # Asked on demand, of content that is as it was: nothing is computed.
        question = json.dumps({"store": str(home / "index.parquet"), "function": str(home / "model"), "device": "cpu"})
        tasks = []
        for _ in range(2):
            site.shell(
                f"prefect deployment run ask/on-demand --watch --param asks=vectors --param question='{question}'"
            )
            run = site.ask(
                "flow_runs/filter",
                {"flows": {"name": {"any_": ["ask"]}}, "sort": "START_TIME_DESC", "limit": 1},
            )[0]
            assert run["state_name"] == "Completed", run["state"]["message"]
            found_tasks = site.ask("task_runs/filter", {"flow_runs": {"id": {"any_": [run["id"]]}}})
            tasks.append({task["name"].split(" ")[0] for task in found_tasks})
        assert "keep" in tasks[0]
        assert tasks[1] == {"look"}
