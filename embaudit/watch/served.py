"""Asks an endpoint whether it serves the checkpoint that it should."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
from pydantic import BaseModel, ConfigDict

from embaudit.checkpoint import load_checkpoint
from embaudit.comparisons.parity.findings import is_apart
from embaudit.comparisons.parity.parity import Verdict, compare_with
from embaudit.errors import EmbauditError
from embaudit.functions.checkpoint import CheckpointFunction
from embaudit.functions.endpoint.recognise import open_endpoint
from embaudit.keys import content_key
from embaudit.measures.quality.material import Material
from embaudit.watch.watch_list import EndpointEntry


class ServedNow(BaseModel):
    """What an endpoint serves; a row of the table ``served``."""

    model_config = ConfigDict(frozen=True)

    look_key: str
    endpoint: str
    asked: datetime
    checkpoint: str
    checkpoint_id: str | None = None
    verdict: Verdict = "could not be compared"
    line: str
    differs: list[str] = []
    worst: float | None = None
    kinds: int = 0
    kinds_apart: int = 0
    requests: int = 0
    seconds: float = 0.0

    @property
    def is_otherwise(self) -> bool:
        return self.verdict == "another function"


def ask_endpoint(entry: EndpointEntry) -> ServedNow:
    """Compare an endpoint with its checkpoint on made-up texts; what fails is the outcome, and raises nothing."""
    start = time.monotonic()
    now = datetime.now(UTC)
    key = content_key(endpoint=entry.address, asked=now.isoformat())
    facts = {"look_key": key, "endpoint": entry.address, "checkpoint": entry.checkpoint, "asked": now}
    try:
        with open_endpoint(entry.address, entry.api, entry.model) as endpoint:
            checkpoint = load_checkpoint(entry.checkpoint, replace(entry.settings.load_options, dtype="float32"))
            report = compare_with(CheckpointFunction(checkpoint), endpoint, Material())
    except EmbauditError as error:
        return ServedNow(**facts, line=error.happened, seconds=time.monotonic() - start)
    compared = [kind for kind in report.kinds if np.isfinite(kind.distances).any()]
    return ServedNow(
        **facts,
        checkpoint_id=report.checkpoint_id,
        verdict=report.verdict,
        line=report.line,
        differs=[] if report.explanation is None else list(report.explanation.sentences),
        worst=max((kind.worst for kind in compared), default=None),
        kinds=len(compared),
        kinds_apart=sum(is_apart(kind) for kind in compared),
        requests=report.requests,
        seconds=report.seconds,
    )
