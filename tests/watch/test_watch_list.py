"""Watch lists: what may stand in one, and what is said of one that does not fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from embaudit.checkpoint.loading import PROMPTS
from embaudit.measures import DEFAULT_MEASURES
from embaudit.measures.listed import load_profile
from embaudit.questions.audit import NOT_ASKED, AuditSettings
from embaudit.system.installed import content_key
from embaudit.watch.watch_list import WatchList, read_watch_list
from embaudit.words.errors import UsageError

Read = Callable[[str], WatchList]
FULL = """
[settings]
profile = "standard"
measures = ["socm"]

[[hub]]
name = "owner/name"

[[hub]]
name = "owner/other"
revision = "dev"
settings = { measures = ["sticky", "socm"], max_length = 128 }

[[organisation]]
name = "owner"
pattern = "e5-*"
tags = ["multilingual"]
limit = 7

[[folder]]
path = "runs"
each = true

[[folder]]
path = "/models/one"
settings = { profile = "quick" }
"""


def test_a_full_list(listed: Read, tmp_path: Path) -> None:
    found = listed(FULL)
    assert [(entry.name, entry.source) for entry in found.hub] == [
        ("owner/name", "owner/name"),
        ("owner/other", "owner/other@dev"),
    ]
    assert found.hub[0].settings == AuditSettings(profile="standard", measures=["socm"])
    assert found.hub[1].settings == AuditSettings(profile="standard", measures=["sticky", "socm"], max_length=128)
    (organisation,) = found.organisation
    assert (organisation.library, organisation.tags, organisation.pattern, organisation.limit) == (
        *("sentence-transformers", ["multilingual"], "e5-*"),
        7,
    )
    assert [(entry.path, entry.each) for entry in found.folder] == [
        (tmp_path / "runs", True),
        (Path("/models/one"), False),
    ]
    assert found.folder[1].settings == AuditSettings(profile="quick", measures=["socm"])


def test_files_are_relative_to_the_list(listed: Read, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('name = "mine"\nversion = 1\ndescription = ""\n')
    (tmp_path / "wiki.txt").write_text("A text.\n")
    found = listed(
        """
        [settings]
        profile = "mine.toml"
        corpora = { wikipedia = "wiki.txt", msmarco = "sample", "msmarco-hard-negatives" = "mined:bm25:beir" }
        pairs = { scoring = "pairs.csv" }
        [[hub]]
        name = "owner/name"
        """
    )
    settings = found.hub[0].settings
    assert settings.profile == str(tmp_path / "mine.toml")
    assert settings.corpora == {
        "wikipedia": str(tmp_path / "wiki.txt"),
        "msmarco": "sample",
        "msmarco-hard-negatives": f"mined:bm25:{tmp_path / 'beir'}",
    }
    assert settings.pairs == {"scoring": str(tmp_path / "pairs.csv")}


@pytest.mark.parametrize("folder", ["~", "~/of/mine"])
def test_a_home_is_expanded_in_every_name(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    inside = tmp_path / "home" / folder.removeprefix("~").lstrip("/")
    inside.mkdir(parents=True)
    (inside / "wiki.txt").write_text("A text.\n")
    names = {name: f"{folder}/{name}" for name in ("mine.toml", "policy.toml", "pairs.csv", "beir", "wiki.txt")}
    asked = AuditSettings(
        profile=names["mine.toml"],
        policy=names["policy.toml"],
        pairs={"scoring": names["pairs.csv"]},
        corpora={"wikipedia": names["wiki.txt"], "msmarco-hard-negatives": f"mined:bm25:{names['beir']}"},
    )
    found = asked.relative_to(tmp_path / "list")
    assert (found.profile, found.policy) == (str(inside / "mine.toml"), str(inside / "policy.toml"))
    assert found.pairs == {"scoring": str(inside / "pairs.csv")}
    assert found.corpora == {
        "wikipedia": str(inside / "wiki.txt"),
        "msmarco-hard-negatives": f"mined:bm25:{inside / 'beir'}",
    }


def test_the_same_settings_in_other_words_have_the_same_key(tmp_path: Path) -> None:
    key = AuditSettings().key
    assert AuditSettings(measures=list(reversed(DEFAULT_MEASURES))).key == key
    assert AuditSettings(device="cpu").key == key
    asked = AuditSettings().model_dump(mode="json", exclude={*NOT_ASKED, *PROMPTS, "profile", "measures"})
    profile = load_profile("quick").asked_of(DEFAULT_MEASURES)
    before_prompts = content_key(**asked, profile=profile, measures=sorted(DEFAULT_MEASURES))
    assert key == before_prompts, "what was watched before there were prompts is not audited anew"
    for other in ({"seed": 1}, {"measures": ["socm"]}, {"profile": "standard"}, {"pooling": "cls"}, {"prompt": ""}):
        assert AuditSettings(**other).key != key  # type: ignore[arg-type]


def test_an_edited_profile_is_other_settings(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\nversion = 1\ndescription = ""\n')
    before = AuditSettings(profile=str(path)).key
    path.write_text('name = "mine"\nversion = 1\ndescription = "better said"\n')
    assert AuditSettings(profile=str(path)).key == before
    path.write_text('name = "mine"\nversion = 1\ndescription = ""\n[socm]\ntexts = 5\n')
    assert AuditSettings(profile=str(path)).key != before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[hub]]\nname = 3", ["hub 1, name", "3"]),
        ('[[hub]]\nname = "no-owner"', ["hub 1, name", "no-owner"]),
        ('[[hub]]\nname = "owner/name@v1"', ["hub 1, name"]),
        ('[[hub]]\nname = "a/b"\n[[hub]]\nname = "a/c"\nrevison = "v1"', ["hub 2, revison", "did you mean revision?"]),
        ('[[hub]]\nname = "a/b"\n[[hubs]]\nname = "a/c"', ["hubs", "did you mean hub?"]),
        (
            '[[hub]]\nname = "a/b"\nsettings = { messures = ["socm"] }',
            ["hub 1, settings, messures", "did you mean measures?"],
        ),
        ('[settings]\nsead = 1\n[[hub]]\nname = "a/b"', ["settings, sead", "did you mean seed?"]),
        ('[settings]\nmeasures = ["socks"]\n[[hub]]\nname = "a/b"', ["settings, measures 1", "socks"]),
        ('[settings]\nprofile = "qick"\n[[hub]]\nname = "a/b"', ["qick", "Did you mean quick?"]),
        ('[settings]\nprofile = "gone.toml"\n[[hub]]\nname = "a/b"', ["gone.toml"]),
        ('[[organisation]]\nname = "a"\nlimit = 0', ["organisation 1, limit"]),
        ("[[folder]]\neach = true", ["folder 1, path is missing"]),
        ('[settings]\nprofile = "quick"', ["has no entries"]),
        ("[[hub]\nname = 1", ["is not TOML"]),
        ('hub = "a/b"', ["hub: ", "valid list"]),
        ("settings = 3\n", ["settings: ", "dictionary or instance"]),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(listed: Read, text: str, words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        listed(text)
    for word in words:
        assert word in str(caught.value)


def test_a_password_in_a_source_is_refused_and_not_repeated(listed: Read) -> None:
    with pytest.raises(UsageError, match="password") as caught:
        listed('[[hub]]\nname = "a/b"\nsettings = { corpora = { sts = "https://me:s3cret@host/x.csv" } }')
    assert "s3cret" not in str(caught.value)


def test_a_list_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no watch list .*watch\.toml"):
        read_watch_list(tmp_path / "watch.toml")
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        read_watch_list(tmp_path)


ENDPOINT = '[[endpoint]]\n{}\ncheckpoint = "packaged:all-MiniLM-L6-v2"'
INDEX = "[[index]]\n{}"


@pytest.mark.parametrize(
    ("entry", "lines", "said"),
    [
        (ENDPOINT, 'address = "https://search.example"', "send_texts = true"),
        (ENDPOINT, 'address = "http://me:secret@localhost"', "EMBAUDIT_API_KEY"),
        (ENDPOINT, 'api = "tei"', "address"),
        (ENDPOINT, 'address = "http://localhost"\napi = "colbert"', "api"),
        (INDEX, 'function = "best"', "Entry 1 of .*index.*store is missing"),
        (INDEX, 'store = "x"', "Entry 1 of .*index.*no function"),
        (INDEX, 'store = "x"\nfunction = "https://search.example"', "send_texts = true"),
        (INDEX, 'store = "x"\nfunction = "http://me:secret@localhost"', "EMBAUDIT_API_KEY"),
        (INDEX, 'store = "x"\nfunction = "best"\nalso = ["https://search.example"]', "send_texts = true"),
        (INDEX, 'store = "x"\nfunction = "best"\nrows = 0', "Entry 1 of .*rows"),
        (INDEX, 'store = "x"\nfunction = "best"\nvectr = "v"', "did you mean vector"),
    ],
)
def test_what_cannot_be_asked_or_looked_at_is_refused(listed: Read, entry: str, lines: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        listed(entry.format(lines))
    assert "secret" not in str(refused.value)
