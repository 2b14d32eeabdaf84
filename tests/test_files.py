"""Files and TOML of the user's own: what is said of what does not fit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from embaudit.measures.listed import Profile, load_profile, profile_names
from embaudit.system.files import replace_atomically, temporary_folder
from embaudit.words.errors import UsageError


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


# ---- TOML ----


HEAD = 'name = "mine"\nversion = 1\ndescription = ""\n'


@pytest.mark.parametrize("name", profile_names())
def test_packaged_profiles_load(name: str) -> None:
    assert load_profile(name).name == name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD + "[sticky]\ncopys = 3\n", "unknown key sticky, copys; did you mean copies?"),
        (HEAD + "[sticky]\ncopies = 0\n", "sticky, copies: input should be greater than or equal to 1, not 0."),
        (HEAD + '[socm]\ntexts = "many"\n', "socm, texts: input should be a valid integer"),
        ('name = "mine"\ndescription = ""\n', "version is missing."),
        ("zebra = 1\n" + HEAD, "unknown key zebra; there are name, version"),
        (HEAD + "[sticky]\ncopies = 0\ncontrols = 0\nsentences = 0\ndraws = 0\n", "; sticky, draws"),
        (HEAD + "[sticky\n", "is not TOML"),
    ],
)
def test_a_mistake_is_one_paragraph_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_profile(str(path))
    assert words in caught.value.happened
    assert str(path) in caught.value.happened
    assert "\n" not in caught.value.happened
    assert "pydantic" not in caught.value.happened


def test_a_profile_that_loads_is_what_its_file_says(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(HEAD + "[sticky]\ndraws = 5\ndoses = [2, 4]\n")
    profile = load_profile(str(path))
    assert isinstance(profile, Profile)
    assert (profile.sticky.draws, profile.sticky.doses) == (5, (2, 4))
