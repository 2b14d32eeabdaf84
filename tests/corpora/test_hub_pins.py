"""No revision but the one that was asked for, or that a branch stood for, is ever taken: online, offline, streamed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_hub import COMMIT, FakeHub, forget_sessions, hub_cache, json_lines

from embaudit.corpora.judged import load_judged
from embaudit.corpora.load import load_corpus
from embaudit.words.errors import CorpusError, HubOffline, HubUnreachable

OLD, NEW = "a" * 40, "b" * 40
SHARDED = "data/test-00000-of-00001.jsonl"
CARD = b"---\nconfigs:\n- config_name: default\n  data_files:\n  - split: test\n    path: data/test-*\n---\n"
GoOffline = Callable[[], None]


def at(commit: str, name: str = SHARDED) -> dict[str, bytes]:
    """A repository whose rows say which commit they are of."""
    return {"README.md": CARD, name: json_lines([{"text": f"text {row} of {commit[0]}"} for row in range(3)])}


@pytest.fixture
def moving(hub: FakeHub) -> FakeHub:
    """org/d at its old commit; ``move`` makes the new one main."""
    hub.commits["org/d"], hub.repositories["org/d"] = OLD, at(OLD)
    return hub


def move(hub: FakeHub) -> None:
    hub.older["org/d", OLD] = hub.repositories["org/d"]
    hub.commits["org/d"], hub.repositories["org/d"] = NEW, at(NEW)


@pytest.fixture
def go_offline(monkeypatch: pytest.MonkeyPatch) -> GoOffline:
    def go() -> None:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        forget_sessions()

    return go


def letters(source: str) -> set[str]:
    """The commits that the rows say they are of."""
    return {text.text[-1] for text in load_corpus("wikipedia", source).texts}


WAYS = ["hub:org/d@{}", "hub:org/d/test@{}:text", f"hub:org/d/{SHARDED}@{{}}", "hub:org/d/data/test-*@{}"]


@pytest.mark.parametrize("way", [*WAYS, "hub:org/d/test[:2]@{}"])
def test_online_a_commit_is_that_commit_whatever_main_is_and_whatever_is_cached(way: str, moving: FakeHub) -> None:
    move(moving)
    assert letters(way.format("main")) == {"b"}
    assert letters(way.format(OLD)) == {"a"}
    assert letters(way.format(NEW)) == {"b"}
    assert load_corpus("wikipedia", way.format(OLD)).revision == OLD


@pytest.mark.parametrize("way", WAYS)
def test_offline_a_commit_comes_from_the_cache_or_not_at_all(way: str, moving: FakeHub, go_offline: GoOffline) -> None:
    letters(way.format(OLD))
    move(moving)
    go_offline()
    assert letters(way.format(OLD)) == {"a"}
    with pytest.raises(HubOffline, match="HF_HUB_OFFLINE") as caught:
        load_corpus("wikipedia", way.format(NEW))
    assert OLD in caught.value.kept
    assert f"hub:org/d@{OLD}" in caught.value.next_step


@pytest.mark.parametrize("way", WAYS)
def test_a_hub_that_fails_gives_no_other_revision_either(way: str, moving: FakeHub) -> None:
    letters(way.format(OLD))
    moving.status = 503
    assert letters(way.format(OLD)) == {"a"}
    with pytest.raises(HubUnreachable):
        load_corpus("wikipedia", way.format(NEW))


def test_a_stream_keeps_nothing_and_needs_the_hub(moving: FakeHub, go_offline: GoOffline) -> None:
    source = f"hub:org/d/test[:2]@{OLD}"
    assert load_corpus("wikipedia", source).counts.read == 2
    go_offline()
    with pytest.raises(HubOffline, match="HF_HUB_OFFLINE is set"):
        load_corpus("wikipedia", source)
    assert not list(hub_cache().rglob("*.jsonl"))


def test_a_stream_reads_what_is_cached_anyway(moving: FakeHub, go_offline: GoOffline) -> None:
    letters(f"hub:org/d@{OLD}")
    go_offline()
    assert load_corpus("wikipedia", f"hub:org/d/test[:2]@{OLD}").counts.read == 2


def test_a_branch_is_resolved_once_and_its_commit_is_recorded(moving: FakeHub, go_offline: GoOffline) -> None:
    corpus = load_corpus("wikipedia", "hub:org/d")
    assert (corpus.revision, corpus.source) == (OLD, f"hub:org/d/test@{OLD}")
    asked = [request for request in moving.requests if not request.endswith("/revision/main")]
    assert len(moving.requests) - len(asked) == 1
    assert all(OLD in request for request in asked)
    move(moving)
    go_offline()
    again = load_corpus("wikipedia", "hub:org/d")
    assert (again.revision, again.corpus_id) == (OLD, corpus.corpus_id)


def test_the_cache_is_one_that_huggingface_hub_reads(moving: FakeHub) -> None:
    from huggingface_hub import scan_cache_dir

    load_corpus("wikipedia", "hub:org/d/test[:2]")
    moving.repositories["org/e"] = {SHARDED: at(OLD)[SHARDED]}
    load_corpus("wikipedia", "hub:org/e[:2]")
    load_corpus("wikipedia", "hub:org/d")
    scanned = scan_cache_dir(hub_cache())
    assert [(repo.repo_id, sorted(repo.refs)) for repo in scanned.repos] == [("org/d", ["main"])]
    assert scanned.warnings == []


def test_the_three_parts_of_a_collection_are_of_one_commit(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    def collection(word: str) -> dict[str, bytes]:
        return {
            "corpus.jsonl": json_lines([{"_id": "d", "text": f"{word} document"}]),
            "queries.jsonl": json_lines([{"_id": "q", "text": f"{word} query"}]),
            "qrels/test.tsv": b"q\td\t1\n",
        }

    hub.commits["org/r"], hub.repositories["org/r"] = OLD, collection("old")
    from embaudit.system.hub import Repository

    ask = Repository.info

    def ask_and_move(self: Repository) -> object:
        answer = ask(self)
        hub.older["org/r", OLD] = collection("old")
        hub.commits["org/r"], hub.repositories["org/r"] = NEW, collection("new")
        return answer

    monkeypatch.setattr(Repository, "info", ask_and_move)
    judged = load_judged("hub:org/r")
    assert [judged.documents.revision, judged.documents.texts[0].text, judged.queries.texts[0].text] == [
        OLD,
        "old document",
        "old query",
    ]


def test_neither_a_cache_of_datasets_nor_a_folder_of_that_name_is_taken(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``load_dataset("org/d")`` reads the folder org/d, and without the hub any revision in its own cache."""
    import datasets

    local = tmp_path / "here" / "org" / "d"
    local.mkdir(parents=True)
    (local / "test.jsonl").write_text('{"text": "local"}\n')
    monkeypatch.chdir(tmp_path / "here")
    cache = tmp_path / "datasets" / "org___d" / "default" / "0.0.0" / NEW
    cache.mkdir(parents=True)
    (cache / "dataset_info.json").write_text(json.dumps({"splits": {}}))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")
    hub.repositories["org/d"] = at(COMMIT)
    assert letters("hub:org/d") == {"0"}
    hub.status = 503
    with pytest.raises(HubUnreachable):
        load_corpus("wikipedia", f"hub:org/d@{NEW}")


@pytest.mark.parametrize(
    "elsewhere",
    ["hf://datasets/org/other@main/x.jsonl", "https://example.org/x.csv", "/etc/passwd", "../other/x.csv", "~/x.csv"],
)
def test_a_card_that_takes_data_from_elsewhere_is_refused(elsewhere: str, hub: FakeHub) -> None:
    files = f"  - split: test\n    path: [x.csv, '{elsewhere}']\n"
    card = f"---\nconfigs:\n- config_name: default\n  data_files:\n{files}---\n"
    hub.repositories["org/d"] = {"README.md": card.encode(), "x.csv": b"text\na\n"}
    with pytest.raises(CorpusError, match=r"refers to data elsewhere .*, which its commits do not pin"):
        load_corpus("wikipedia", "hub:org/d")


@pytest.mark.parametrize("cached", ["data/train-00000-of-00002.jsonl", "data/train-00000-of-00001.jsonl"])
def test_a_cache_that_cannot_tell_says_what_it_holds(cached: str, hub: FakeHub, go_offline: GoOffline) -> None:
    """A split of which a shard is missing; and train, where test may be meant."""
    hub.repositories["org/d"] = {"README.md": b"", cached: json_lines([{"text": "one"}])}
    assert load_corpus("wikipedia", f"hub:org/d/{cached}@{COMMIT}").counts.kept == 1
    go_offline()
    split = "/train" if "00002" in cached else ""
    with pytest.raises(HubOffline) as caught:
        load_corpus("wikipedia", f"hub:org/d{split}@{COMMIT}")
    assert cached in caught.value.kept
    assert f"hub:org/d/{cached}@{COMMIT}" in caught.value.next_step


def test_one_split_of_a_card_is_enough_offline(hub: FakeHub, go_offline: GoOffline) -> None:
    splits = "".join(f"  - split: {name}\n    path: data/{name}-*\n" for name in ("train", "test"))
    card = f"---\nconfigs:\n- config_name: default\n  data_files:\n{splits}---\n"
    shards = {f"data/{name}-00000-of-00001.jsonl": json_lines([{"text": name}]) for name in ("train", "test")}
    hub.repositories["org/d"] = {"README.md": card.encode(), **shards}
    assert load_corpus("wikipedia", f"hub:org/d@{COMMIT}").texts[0].text == "test"
    go_offline()
    assert load_corpus("wikipedia", f"hub:org/d@{COMMIT}").texts[0].text == "test"
    assert not (hub_cache() / "datasets--org--d/snapshots" / COMMIT / "data/train-00000-of-00001.jsonl").exists()
