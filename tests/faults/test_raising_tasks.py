"""A task that raises: a checkpoint that computes NaN, files that vanish under a running audit."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest
from fault_table import Record
from runs import Make, Rows, content, rewritten, staged, staged_files
from tiny_models import change_tensors

pytestmark = pytest.mark.xdist_group("faults")


@pytest.mark.slow
@pytest.mark.fault("a task raises: the checkpoint computes NaN")
def test_a_checkpoint_that_computes_nan(
    command: Make, undisturbed: Rows, tiny_checkpoint: Path, home: Path, tmp_path: Path, record_fault: Record
) -> None:
    """Finite weights, so that loading accepts them, and sums too large for float32."""
    folder = Path(shutil.copytree(tiny_checkpoint, tmp_path / "tiny"))
    sound = (folder / "model.safetensors").read_bytes()
    change_tensors(folder / "model.safetensors", lambda found: found["encoder.layer.1.output.dense.weight"].fill_(3e38))
    result = command(checkpoint=folder).run().refused()
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        found = connection.execute("SELECT status, reason FROM audit").fetchall()
        assert connection.execute("SELECT count(*) FROM socm_pair").fetchall() == [(0,)]
    assert [status for status, _ in found] == ["failed"]
    (folder / "model.safetensors").write_bytes(sound)
    again = command(checkpoint=folder).run()
    assert again.returncode == 0, again.stderr
    assert content(home / "warehouse.duckdb")["socm_pair"] == undisturbed["socm_pair"]
    record_fault(
        f"exit code 2: {result.paragraph}",
        "no table has a row of it; the audit is on record as failed, with the reason",
        "with the sound weights in that folder: ended with 0, as another audit",
    )


@pytest.mark.slow
@pytest.mark.fault("a task raises: a staged file vanishes under a running audit")
def test_a_staged_file_that_vanishes(command: Make, undisturbed: Rows, home: Path, record_fault: Record) -> None:
    audit = command()
    running = audit.start()
    # Late enough that no step of the measure reads it any more: one would find it gone, and compute it again.
    running.wait_for(lambda: [path for path in staged_files(home) if path.name.startswith("socm_tightness")])
    victim = next(path for path in staged_files(home) if path.name.startswith("socm_pair"))
    shutil.rmtree(victim.parent)
    result = running.wait().refused()
    assert "is missing" in result.stderr
    kept = staged(home)
    again = audit.run()
    assert again.returncode == 0, again.stderr
    assert not rewritten(kept, staged(home))
    assert victim.is_file()
    assert content(home / "warehouse.duckdb")["socm_pair"] == undisturbed["socm_pair"]
    record_fault(
        f"exit code 2: {result.paragraph}",
        f"the other {len(kept)} staged files; no table has a row of it",
        "ended with 0: the missing file was computed again, none of the others",
    )
