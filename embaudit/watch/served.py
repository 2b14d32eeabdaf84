"""Asks an endpoint whether it serves what it should: a checkpoint, or what it served when it was first asked.

A hosted model whose files nobody sees may change overnight behind its name. So its first look leaves a passport in the
folder of reports, and every later one is held against that, until somebody puts another in its place: what changed
once stays red.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from embaudit.embedders.function import EmbeddingFunction
from embaudit.embedders.opened import CallOptions, open_both, open_function
from embaudit.measures.quality.material import Material
from embaudit.questions.parity.compare import is_apart
from embaudit.questions.parity.parity import ParityReport, Verdict, compare_with
from embaudit.questions.passport.make import make_passport
from embaudit.questions.passport.passport import Passport, checksum_of, read_passport, write_passport
from embaudit.questions.passport.verify import verify_with
from embaudit.system.installed import content_key
from embaudit.watch.watch_list import EndpointEntry
from embaudit.words.errors import EmbauditError

FIRST_SEEN: Literal["first seen"] = "first seen"
PASSPORTS = "endpoints"


class ServedNow(BaseModel):
    """What an endpoint serves; a row of the table ``served``."""

    model_config = ConfigDict(frozen=True)

    look_key: str
    endpoint: str
    asked: datetime
    checkpoint: str
    checkpoint_id: str | None = None
    verdict: Verdict | Literal["first seen"] = "could not be compared"
    line: str
    differs: list[str] = []
    worst: float | None = None
    kinds: int = 0
    kinds_apart: int = 0
    requests: int = 0
    seconds: float = 0.0
    # Whether somebody accepted that it serves this.
    is_accepted: bool = False

    @property
    def is_otherwise(self) -> bool:
        return self.verdict == "another function"


def ask_endpoint(entry: EndpointEntry, reports: Path) -> ServedNow:
    """Compare an endpoint with what it should serve on made-up texts; what fails is the outcome, and raises nothing.

    Args:
        reports: the folder in which passports of endpoints without a checkpoint are kept.
    """
    start = time.monotonic()
    now = datetime.now(UTC)
    key = content_key(endpoint=entry.address, asked=now.isoformat())
    path = passport_of_endpoint(entry.address, entry.api, entry.model, reports)
    facts: dict[str, Any] = {
        "look_key": key,
        "endpoint": entry.address,
        "checkpoint": entry.checkpoint or f"its passport {path}",
        "asked": now,
    }
    options = replace(entry.settings.load_options, dtype="float32")
    asked = CallOptions(entry.api, entry.model)
    try:
        if entry.checkpoint is not None:
            checkpoint, endpoint = open_both(
                (entry.checkpoint, entry.address), (options, options), (CallOptions(), asked)
            )
            with checkpoint, endpoint:
                facts |= _compared(compare_with(checkpoint, endpoint, Material()))
        else:
            with open_function(entry.address, options, asked) as endpoint:
                facts |= _held_to_passport(endpoint, path)
    except EmbauditError as error:
        facts |= {"line": error.happened}
    return ServedNow(**facts, seconds=time.monotonic() - start)


def passport_of_endpoint(address: str, api: str | None, model: str | None, reports: Path) -> Path:
    """Where its passport is, if it was watched without a checkpoint."""
    name = hashlib.sha256(repr((address, api, model)).encode()).hexdigest()[:16]
    return reports / PASSPORTS / f"{name}.passport.json"


def _held_to_passport(endpoint: EmbeddingFunction, path: Path) -> dict[str, Any]:
    """Against the passport of its first look, which is made if there is none."""
    if path.exists():
        passport = read_passport(path)
        return {**_compared(verify_with(passport, endpoint)), "checkpoint_id": id_of_passport(passport)}
    made = make_passport(endpoint)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_passport(made, path)
    line = f"Its passport was made: {len(made.canaries)} texts, which it is compared with from the next time on."
    return {
        "verdict": FIRST_SEEN,
        "line": line,
        "checkpoint_id": id_of_passport(made),
        "kinds": len(made.kinds),
        "requests": endpoint.requests,
    }


def id_of_passport(passport: Passport) -> str:
    """Of a function that has no id, that of its vectors."""
    return passport.checkpoint.id or checksum_of(passport.as_json()).removeprefix("sha256:")[:16]


def _compared(report: ParityReport) -> dict[str, Any]:
    compared = [kind for kind in report.kinds if np.isfinite(kind.distances).any()]
    return {
        "checkpoint_id": report.checkpoint_id,
        "verdict": report.verdict,
        "line": report.line,
        "differs": list(report.differs),
        "worst": max((kind.worst for kind in compared), default=None),
        "kinds": len(compared),
        "kinds_apart": sum(is_apart(kind) for kind in compared),
        "requests": report.requests,
    }
