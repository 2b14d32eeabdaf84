"""What doctor says in states that a test machine is not in: a library that is missing or too old, one server, none."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from told_in_full import wrong_in

from embaudit.cli import doctor
from embaudit.cli.doctor import LIBRARIES, Checked


@pytest.mark.parametrize("missing", LIBRARIES)
def test_a_library_that_is_missing_is_named(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = doctor.version

    def version(name: str) -> str:
        if name == missing:
            raise PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(doctor, "version", version)
    found = doctor._versions()
    assert not found.is_good
    assert f"{missing} is missing" in found.found
    assert found.advice


def test_a_library_that_is_too_old_is_named_with_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = doctor.version
    monkeypatch.setattr(doctor, "version", lambda name: "0.0.1" if name == "numpy" else real(name))
    assert "numpy 0.0.1 is not" in doctor._versions().found


def test_no_state_of_the_disk_or_the_warehouse_is_told_in_broken_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    told: list[Checked] = [doctor._disk(tmp_path / "none" / "yet"), doctor._warehouse(tmp_path / "none.duckdb")]
    told += doctor._server()
    monkeypatch.setattr(doctor, "MIN_FREE_BYTES", 10**30)
    told.append(doctor._disk(tmp_path))
    for one in told:
        assert one.found
        assert not wrong_in(one.found)
        assert not wrong_in(one.advice)
        assert one.is_good or one.advice
