"""TOML of the user's own: what is said of a file that does not fit (policies and watch lists have their own tests)."""

from __future__ import annotations

from pathlib import Path

import pytest

from embaudit.measures.listed import Profile, load_profile, profile_names
from embaudit.words.errors import UsageError

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
