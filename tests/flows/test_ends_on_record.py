"""How an audit ended is on record, whatever ended it, and what could not be measured ends none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from some_rows import mostly_slow
from warehouse_rows import rows

from embaudit.questions.audit import AuditRequest
from embaudit.words.errors import CorpusError, EmbauditError, MeasureError, UsageError
from embaudit_flows import audit as audit_flow
from embaudit_flows.audit import AuditOutcome, audit


def run(checkpoint: Path, profile: Path, **options: Any) -> AuditOutcome:
    return audit(AuditRequest.of(checkpoint=str(checkpoint), profile=str(profile), **{"device": "cpu", **options}))


def twins(folder: Path) -> Path:
    """Twenty sentences that differ in one letter: every pair is far more similar than two random tokens."""
    path = folder / "twins.csv"
    sentences = [
        f"the river is old and the sea is great near the town of {letter}" for letter in "abcdefghijklmnopqrst"
    ]
    path.write_text("".join(f"{a},{b},5\n" for a, b in zip(sentences[:10], sentences[10:], strict=True)))
    return path


@pytest.mark.slow
def test_no_pair_below_u_leaves_out_sticky_tokens_and_nothing_else(
    home: Path, tiny_checkpoint: Path, tiny_profile: Path, tmp_path: Path
) -> None:
    chosen = ["integrity", "quality", "sticky", "occurrence", "mitigation"]
    outcome = run(tiny_checkpoint, tiny_profile, corpora={"sts": str(twins(tmp_path))}, measures=chosen)
    assert [
        line for line in outcome.warnings if line.startswith("Skipped sticky tokens: No sentence pair lies below u")
    ]
    assert "Skipped occurrence: sticky tokens could not be looked for." in outcome.warnings
    assert outcome.verdict["kind"] == "do not serve"
    found = rows(home / "warehouse.duckdb", "SELECT level FROM finding WHERE name = 'not_searched'")
    assert found == [("not measured",)]


def test_given_pairs_of_which_none_is_below_u_are_an_error_on_record(
    home: Path, tiny_checkpoint: Path, tiny_profile: Path, tmp_path: Path
) -> None:
    given = str(twins(tmp_path))
    with pytest.raises(MeasureError, match="No sentence pair lies below u"):
        run(tiny_checkpoint, tiny_profile, pairs={"scoring": given, "validation": given}, measures=["sticky"])
    status, reason = rows(home / "warehouse.duckdb", "SELECT status, reason FROM audit")[0]
    assert status == "failed"
    assert "below u" in reason


def broken(error: BaseException) -> Any:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("options", "place", "error", "expected", "reason"),
    mostly_slow(
        [
            # In planning.
            ({"profile": "none.toml"}, None, None, UsageError, "none.toml"),
            ({"checkpoint": "/nowhere/tiny"}, None, None, EmbauditError, "/nowhere/tiny"),
            # In ingestion.
            ({"corpora": {"wikipedia": "/nowhere.txt"}}, None, None, CorpusError, "/nowhere.txt"),
            ({"corpora": {"sts": "sample"}}, None, None, UsageError, "'sts'"),
            # What no measure expects.
            ({}, "plan_audit", MemoryError("on the way"), MeasureError, "on the way"),
            (
                {},
                "plan_audit",
                torch.AcceleratorError("CUDA error: gone"),
                MeasureError,
                "The device failed: CUDA error: gone",
            ),
            ({}, "_shared_tables", torch.OutOfMemoryError("CUDA out of memory."), MeasureError, "CUDA out of memory."),
            (
                {},
                "run_measure",
                RuntimeError("DefaultCPUAllocator: can't allocate memory"),
                MeasureError,
                "can't allocate memory",
            ),
            (
                {},
                "run_measure",
                OSError(28, "No space left on device"),
                OSError,
                "OSError: [Errno 28] No space left on device",
            ),
            ({}, "stage_findings", KeyError("a bug"), KeyError, "KeyError: 'a bug'"),
            ({}, "_ingest", ValueError("https://me:canary@x/y"), ValueError, "ValueError: https://x/y"),
        ],
        1,
    ),
)
def test_whatever_ends_an_audit_is_on_record(
    options: dict[str, Any],
    place: str | None,
    error: Exception | None,
    expected: type[Exception],
    reason: str,
    home: Path,
    tiny_checkpoint: Path,
    tiny_profile: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if place is not None and error is not None:
        monkeypatch.setattr(audit_flow, place, broken(error))
    asked = {"checkpoint": str(tiny_checkpoint), "profile": str(tiny_profile), "measures": ["socm"], "device": "cpu"}
    # Twice: the same question has one row.
    for _ in range(2):
        with pytest.raises(expected):
            audit(AuditRequest.of(**asked | options))
    ((status, found, source),) = rows(
        home / "warehouse.duckdb", "SELECT status, reason, settings ->> '$.source' FROM audit"
    )
    assert status == "failed"
    assert reason in found
    assert source == asked.get("checkpoint") if "checkpoint" not in options else options["checkpoint"]


@pytest.mark.usefixtures("new_home")
def test_an_interrupt_is_not_a_failure(
    home: Path, tiny_checkpoint: Path, tiny_profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_flow, "plan_audit", broken(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        run(tiny_checkpoint, tiny_profile)
    assert not (home / "warehouse.duckdb").exists()
