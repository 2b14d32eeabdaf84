"""Staged files that something else changed: refused by name, and nothing that is published is touched."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fault_table import Record
from runs import Ended, Finished, content, rewritten, staged, steps

pytestmark = pytest.mark.xdist_group("faults")


def refused(finished: Finished) -> Ended:
    """The same command says no in one paragraph, and the published rows are as they were."""
    result = finished.command.run().refused()
    now = content(finished.warehouse)
    assert {name: rows for name, rows in now.items() if name != "audit"} == {
        name: rows for name, rows in finished.content.items() if name != "audit"
    }
    return result


def repaired(finished: Finished, victim: Path) -> str:
    """What the paragraph says to do: delete that file, and run the same command again."""
    victim.unlink()
    before = staged(finished.home)
    result = finished.command.run()
    assert result.returncode == 0, result.stderr
    again = rewritten(before, staged(finished.home))
    assert steps(again) <= {victim.parent}
    assert victim.is_file()
    assert content(finished.warehouse)["socm_pair"] == finished.content["socm_pair"]
    return f"after deleting the file: ended with 0; that step was computed again, {len(before) - len(again)} files kept"


@pytest.mark.slow
@pytest.mark.fault("a staged file is cut short")
def test_a_file_that_is_cut_short(finished: Finished, record_fault: Record) -> None:
    victim = finished.file("socm_pair", "wikipedia")
    with victim.open("r+b") as file:
        file.truncate(victim.stat().st_size // 2)
    result = refused(finished)
    assert str(victim) in result.stderr
    record_fault(f"exit code 2: {result.paragraph}", "the published rows as they were", repaired(finished, victim))


@pytest.mark.slow
@pytest.mark.fault("a bit of a staged file is flipped")
def test_a_flipped_bit(finished: Finished, record_fault: Record) -> None:
    victim = finished.file("socm_pair", "wikipedia")
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1 << 3
    victim.write_bytes(content)
    result = refused(finished)
    assert str(victim) in result.stderr
    record_fault(f"exit code 2: {result.paragraph}", "the published rows as they were", repaired(finished, victim))


@pytest.mark.slow
@pytest.mark.fault("a staged file is replaced by another one")
def test_another_file_under_its_name(finished: Finished, record_fault: Record) -> None:
    victim, other = finished.file("socm_pair", "wikipedia"), finished.file("socm_pair", "msmarco")
    shutil.copyfile(other, victim)
    result = refused(finished)
    record_fault(f"exit code 2: {result.paragraph}", "the published rows as they were", repaired(finished, victim))


@pytest.mark.slow
@pytest.mark.fault("an expectation fails")
def test_bad_rows_in_a_sound_file(finished: Finished, record_fault: Record) -> None:
    """Impossible distances, in a file whose checksums are right."""
    victim = finished.file("socm_pair", "wikipedia")
    table, record = pq.read_table(victim, partitioning=None), pq.read_metadata(victim).metadata[b"embaudit"]
    values = table.column("d_mu").to_pylist()
    values[3] = 2.0
    place = table.schema.get_field_index("d_mu")
    changed = table.set_column(place, table.schema.field("d_mu"), [pa.array(values)])
    pq.write_table(changed.replace_schema_metadata({"embaudit": record}), victim)
    result = refused(finished)
    assert "socm_pair.d_mu" in result.stderr
    record_fault(
        f"exit code 2: {result.paragraph}",
        "the published rows as they were; the failed check in expectation_result, the reason beside the audit",
        repaired(finished, victim),
    )
