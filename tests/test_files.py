"""Complete or absent: what replaces a file, folder or link, and what an error on the way leaves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from embaudit.system.files import replace_atomically, temporary_folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "new" / "page.html"
    with replace_atomically(path) as partial:
        partial.write_text("half")
        assert not path.exists()
        assert partial.parent == path.parent
        assert partial.name.startswith(".page.html.")
        partial.write_text("whole")
    assert path.read_text() == "whole"
    assert names(path.parent) == ["page.html"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")

    def fail() -> None:
        with replace_atomically(path) as partial:
            partial.write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["page.html"]


def test_an_open_file_stays_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")
    with path.open() as reader:
        with replace_atomically(path, mode=0o444) as partial:
            partial.write_text("new")
        assert reader.read() == "old"
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o444


def test_a_folder_takes_an_empty_one_s_place_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.mkdir()
    for is_free in (True, False):
        try:
            with replace_atomically(path) as partial:
                partial.mkdir()
                (partial / "inner").mkdir()
                (partial / "inner" / "weights").write_text(str(is_free))
        except OSError:
            assert not is_free
        assert (path / "inner" / "weights").read_text() == "True"
    assert names(tmp_path) == ["checkpoint"]


def test_a_link_is_replaced_and_not_what_it_leads_to(tmp_path: Path) -> None:
    for version in ("a", "b"):
        (tmp_path / version).mkdir()
        with replace_atomically(tmp_path / "current") as link:
            link.symlink_to(version)
    assert (tmp_path / "current").readlink() == Path("b")
    assert names(tmp_path) == ["a", "b", "current"]


def test_everything_is_synced_before_the_name_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def record_sync(descriptor: int) -> None:
        events.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    def record_rename(source: Path, target: Path) -> Path:
        events.append("rename")
        return replace(source, target)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(Path, "replace", record_rename)
    with replace_atomically(tmp_path / "folder") as partial:
        partial.mkdir()
        (partial / "weights").write_text("1")
    assert events == ["weights", partial.name, "rename", tmp_path.name]


def test_a_temporary_folder_goes_with_everything_in_it(tmp_path: Path) -> None:
    with temporary_folder(tmp_path / "copy.duckdb") as folder:
        (folder / "copy.duckdb.wal").write_text("log")
    assert names(tmp_path) == []
