"""MTEB result files: one task of one checkpoint.

Since mteb 1.11: ``{"task_name": …, "scores": {split: [{"hf_subset": …, "main_score": …}, …]}}``, in a folder
``<owner>__<name>/<revision>/<task>.json`` next to ``model_meta.json`` (name, revision). Before that:
``{"mteb_dataset_name": …, split: {…}}`` or ``{…, split: {subset: {…}}}``, where many tasks have no ``main_score``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from embaudit.corpora.scores.shapes import DEFAULT_SUBSET, NOTHING_IMPORTED, Score, SkippedSource, finite_number
from embaudit.system.small_files import parsed, small_bytes
from embaudit.words.errors import UsageError

MODEL_META = "model_meta.json"
# Results of the same checkpoint under other settings.
EXPERIMENTS = "experiments"
# Main scores before 1.11, in order of preference: retrieval, clustering, STS and summaries, pair classification,
# reranking, classification, bitext mining.
OLD_MAIN_SCORES = (
    ("main_score",),
    ("ndcg_at_10",),
    ("v_measure",),
    ("cos_sim", "spearman"),
    ("cos_sim", "ap"),
    ("map",),
    ("accuracy",),
    ("f1",),
)
OLD_HEAD = ("mteb_dataset_name", "dataset_revision", "mteb_version", "evaluation_time")


def is_mteb_result(value: Any) -> bool:
    """Whether a JSON document is an MTEB result of one task."""
    if not isinstance(value, dict):
        return False
    return ("task_name" in value and isinstance(value.get("scores"), dict)) or "mteb_dataset_name" in value


def mteb_scores(path: Path, result: dict[str, Any], checkpoint: str | None) -> Iterator[Score | SkippedSource]:
    """One score per split and subset; a main score that is null or not finite is reported as skipped.

    Raises:
        UsageError: if nothing names the checkpoint.
    """
    name, revision = checkpoint_of(path)
    name = checkpoint or name
    if not name:
        raise UsageError(
            f"{path} is an MTEB result, but nothing names its checkpoint (no {MODEL_META}, no folder "
            "<owner>__<name>/<revision>).",
            kept=NOTHING_IMPORTED,
            next_step="Give it: --checkpoint owner/name",
        )
    task = str(result["task_name"] if "task_name" in result else result["mteb_dataset_name"])
    parts = list(_parts(result))
    for split, subset, metric, value in parts:
        score = finite_number(value)
        place = f"{split}, {subset}"
        if score is None:
            yield SkippedSource(str(path), f"{place}: the main score is {json.dumps(value)}")
        else:
            yield Score(name, revision, task, split, subset, score, metric, str(path), place)
    if not parts:
        yield SkippedSource(str(path), "no split with scores")


def checkpoint_of(path: Path) -> tuple[str, str]:
    """Name and revision of a result's checkpoint; both "" if unknown."""
    meta = _model_meta(path.parent / MODEL_META)
    name, revision = meta.get("name"), meta.get("revision")
    folder = path.parent.parent.name
    if "__" in folder:
        name = name or folder.replace("__", "/")
        revision = revision or path.parent.name
    revision = str(revision or "")
    return str(name or ""), "" if revision == "no_revision_available" else revision


def _model_meta(path: Path) -> dict[str, Any]:
    try:
        found = parsed(small_bytes(path))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _parts(result: dict[str, Any]) -> Iterator[tuple[str, str, str | None, Any]]:
    """Split, subset, metric and value of every main score."""
    if "task_name" in result:
        for split, entries in result["scores"].items():
            for entry in entries if isinstance(entries, list) else []:
                if isinstance(entry, dict):
                    yield (
                        str(split),
                        str(entry.get("hf_subset") or DEFAULT_SUBSET),
                        "main_score",
                        entry.get("main_score"),
                    )
        return
    for split, scores in result.items():
        if split in OLD_HEAD or not isinstance(scores, dict):
            continue
        whole = _old_main_score(scores)
        if whole is not None:
            yield str(split), DEFAULT_SUBSET, *whole
            continue
        subsets = {subset: found for subset, found in scores.items() if isinstance(found, dict)}
        for subset, found in subsets.items():
            yield str(split), str(subset), *(_old_main_score(found) or (None, None))
        if not subsets:
            yield str(split), DEFAULT_SUBSET, None, None


def _old_main_score(scores: dict[str, Any]) -> tuple[str, Any] | None:
    for path in OLD_MAIN_SCORES:
        value: Any = scores
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None and not isinstance(value, dict):
            return ".".join(path), value
    return None
