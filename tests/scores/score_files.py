"""Score files as people and MTEB write them, and audits of checkpoints that they are scores of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ready_warehouses
from plausible import audit_record, plausible_rows

REVISION = "8b3219a92973c328a8e22fadcfa821b5dc75636a"


def mteb_result(task: str, *parts: Mapping[str, Any], split: str = "test") -> dict[str, Any]:
    """A result as mteb writes it since 1.11."""
    entries = [{"hf_subset": "default", "languages": ["eng-Latn"], "cosine_pearson": 0.1, **part} for part in parts]
    return {
        "dataset_revision": "b0fddb56ed78048fa8b90373c8a3cfc37b684831",
        "evaluation_time": 1.2,
        "kg_co2_emissions": None,
        "mteb_version": "1.12.75",
        "scores": {split: entries},
        "task_name": task,
    }


def write_mteb(
    folder: Path, checkpoint: str, results: Mapping[str, float], *, revision: str = REVISION, meta: bool = True
) -> Path:
    """A results folder of one checkpoint; returns the folder of its revision."""
    place = folder / checkpoint.replace("/", "__") / revision
    place.mkdir(parents=True)
    for task, score in results.items():
        (place / f"{task}.json").write_text(json.dumps(mteb_result(task, {"main_score": score})))
    if meta:
        (place / "model_meta.json").write_text(json.dumps({"name": checkpoint, "revision": revision}))
    return place


def put_audits(
    warehouse: Path,
    sources: Sequence[str],
    socm: Sequence[float],
    spreads: Sequence[float | None] | None = None,
) -> None:
    """One audit a checkpoint, with this average SOCM on Wikipedia and this spread of the states that are pooled."""
    ready_warehouses.put_audits(
        warehouse,
        [
            (audit_record(f"a{i}", f"c{i}", minutes=i), _rows(i, source, value, spreads[i] if spreads else 0.1 + i))
            for i, (source, value) in enumerate(zip(sources, socm, strict=True))
        ],
    )


def _rows(i: int, source: str, socm: float, spread: float | None) -> dict[str, list[dict[str, Any]]]:
    rows = {
        table: found
        for table, found in plausible_rows(f"c{i}", source).items()
        if table in ("checkpoint", "corpus", "socm_summary", "layer_stat", "pooled_stat")
    }
    rows["socm_summary"] = [{**rows["socm_summary"][0], "socm_mean": socm}]
    rows["layer_stat"] = [{**row, "normalised_spread": 99.0 - i} for row in rows["layer_stat"]]
    rows["pooled_stat"] = [{**row, "normalised_spread": spread} for row in rows["pooled_stat"]]
    return rows
