"""Audits whose staged files lie in an object store: killed on one machine, finished on another, checked as anywhere."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from io import BytesIO
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from commands import CLI, Embaudit
from s3_server import SECRET, Bucket

SHARDS = {"EMBAUDIT_PAIRS_PER_SHARD": "100"}


def measured(bucket: Bucket) -> dict[str, str]:
    """Staged objects of the measures and when they were written."""
    return {
        name: written
        for name, written in bucket.objects().items()
        if name.endswith(".parquet") and "/corpus/" not in name and "/audit/" not in name
    }


@pytest.mark.slow
def test_an_audit_killed_here_is_finished_elsewhere_and_damage_is_named(
    embaudit: Embaudit,
    command_environment: dict[str, str],
    bucket: Bucket,
    home: Path,
    tmp_path: Path,
    tiny_checkpoint: Path,
    tiny_profile: Path,
) -> None:
    audit = ("audit", str(tiny_checkpoint), "--profile", str(tiny_profile), "--measures", "sticky,socm")
    here = {**SHARDS, **bucket.environment, "EMBAUDIT_STAGING": f"{bucket.address}/team"}
    process = subprocess.Popen(
        [*CLI, *audit],
        env={**command_environment, **here},
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 240
    while not any("/sticky_score-" in name for name in bucket.objects()):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    # A step counts as done once its files are there: all that came before the scores.
    kept = {name: written for name, written in measured(bucket).items() if "/moments-" in name}
    assert kept
    assert not (home / "staging").exists()
    elsewhere = {**here, "EMBAUDIT_HOME": str(tmp_path / "elsewhere")}
    result = embaudit(*audit, timeout=400, **elsewhere)
    assert result.returncode == 0, result.stderr
    done = measured(bucket)
    assert {name: done[name] for name in kept} == kept
    assert len(done) > len(kept)
    with duckdb.connect(str(tmp_path / "elsewhere" / "warehouse.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM socm_pair").fetchone() == (2 * 435,)
    _damage_is_named_and_mended(embaudit, bucket, audit, elsewhere, done)
    assert SECRET not in result.stdout + result.stderr


def _damage_is_named_and_mended(
    embaudit: Embaudit, bucket: Bucket, audit: tuple[str, ...], environment: dict[str, str], done: dict[str, str]
) -> None:
    store = bucket.store()
    gone = next(name for name in done if "/socm_summary-" in name)
    store.rm_file(gone)
    assert embaudit(*audit, timeout=400, **environment).returncode == 0
    changed = {name for name, written in measured(bucket).items() if done.get(name) != written}
    # What the same task wrote lies in the same folder.
    assert gone in changed
    assert {name.rsplit("/", 1)[0] for name in changed} == {gone.rsplit("/", 1)[0]}
    broken = next(name for name in done if "/socm_pair-" in name)
    whole = store.cat_file(broken)
    rows = pq.read_table(BytesIO(whole))
    store.pipe_file(broken, whole[: len(whole) // 2])
    result = embaudit(*audit, timeout=400, **environment)
    assert result.returncode == 2
    assert f"The staged file {broken} cannot be read" in result.stderr
    assert "Traceback" not in result.stderr
    store.rm_file(broken)
    assert embaudit(*audit, timeout=400, **environment).returncode == 0
    # The same rows; its record says what it took this time.
    assert pq.read_table(BytesIO(store.cat_file(broken))).equals(rows)
