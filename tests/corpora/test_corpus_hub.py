"""Hub data sets against a hub on localhost: pinned commits, the cache, and every way in which it can fail."""

from __future__ import annotations

import gzip
import io
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fake_hub import COMMIT, FakeHub, hub_cache, json_lines

from embaudit.corpora.catalog import CORPORA
from embaudit.corpora.load import load_corpus
from embaudit.steps.results import StagedCorpus
from embaudit.system import hub as hub_module
from embaudit.words.errors import CorpusError, HubOffline, HubUnreachable

Ingested = Callable[[str], StagedCorpus]
ROWS = [
    {"sentence1": "a", "sentence2": "b", "score": 1.5, "lang": "en"},
    {"sentence1": "c", "sentence2": "d"},
]


def parquet(**columns: list[object]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def test_a_pinned_file_is_fetched_once_and_then_read_without_the_hub(hub: FakeHub) -> None:
    hub.repositories["org/sts"] = {"test.jsonl.gz": gzip.compress(json_lines(ROWS)), "train.jsonl.gz": b"no"}
    corpus = load_corpus("sts", f"hub:org/sts@{COMMIT}")
    assert [(pair.first, pair.score) for pair in corpus.pairs] == [("a", 1.5), ("c", None)]
    assert (corpus.source, corpus.revision) == (f"hub:org/sts/test@{COMMIT}", COMMIT)
    hub.requests.clear()
    assert load_corpus("sts", f"hub:org/sts/test.jsonl.gz@{COMMIT}").pairs == corpus.pairs
    assert hub.requests == []


def test_main_is_resolved_to_the_commit_and_survives_a_dead_hub(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.repositories["org/sts"] = {"only.csv": b"sentence1,sentence2,score\na,b,2\nc,d,3\n"}
    corpus = load_corpus("sts", "hub:org/sts")
    assert corpus.revision == COMMIT
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    offline = load_corpus("sts", "hub:org/sts/only.csv")
    assert (offline.corpus_id, offline.revision) == (corpus.corpus_id, COMMIT)


def test_a_limited_load_asks_only_for_the_shards_it_needs_and_keeps_none(hub: FakeHub) -> None:
    shards = {
        f"triplet/train-{n:05d}-of-00003.parquet": parquet(
            query=[f"q{n}"] * 2, positive=["p"] * 2, negative=[f"n{n}", f"m{n}"]
        )
        for n in range(3)
    }
    hub.repositories["org/triples"] = shards
    source = f"hub:org/triples/triplet/train-*.parquet@{COMMIT}"
    assert load_corpus("msmarco-hard-negatives", source, limit=3).counts.kept == 3
    asked = {request for request in hub.requests if request.startswith("GET /datasets/")}
    assert {request.rsplit("/", 1)[-1] for request in asked} == {name.rsplit("/", 1)[-1] for name in list(shards)[:2]}
    assert not list(hub_cache().rglob("*.parquet"))
    assert load_corpus("msmarco-hard-negatives", source).counts.kept == 6


def test_a_cached_part_of_a_pattern_is_not_taken_for_the_whole(hub: FakeHub) -> None:
    hub.repositories["org/w"] = {"data/a.txt": b"one\n", "data/b.txt": b"two\n"}
    assert load_corpus("wikipedia", f"hub:org/w/data/a.txt@{COMMIT}").counts.kept == 1
    assert load_corpus("wikipedia", f"hub:org/w/data/*.txt@{COMMIT}").counts.kept == 2


def test_configurations_of_the_card_are_understood(hub: FakeHub) -> None:
    card = (
        "---\nconfigs:\n- config_name: en\n  data_files:\n  - split: train\n    path: train/en.csv\n"
        "  - split: test\n    path: test/en.csv\n- config_name: flat\n  data_files: flat.csv\n"
        "- config_name: two\n  data_files:\n  - {split: a, path: flat.csv}\n"
        "  - {split: b, path: flat.csv}\n---\n"
    )
    head = b"sentence1,sentence2,score\n"
    files = {"train/en.csv": b"t,u,1\n", "test/en.csv": b"v,w,2\n", "flat.csv": b"x,y,3\n"}
    files = {name: head + rows for name, rows in files.items()}
    hub.repositories["org/c"] = {**files, "README.md": card.encode()}
    for what, first in {"[en]": "v", "[en]/train": "t", "[flat]": "x", "[two]/b": "x"}.items():
        assert load_corpus("sts", f"hub:org/c{what}").pairs[0].first == first
    with pytest.raises(CorpusError, match="it has a, b") as caught:
        load_corpus("sts", "hub:org/c[two]")
    assert f"hub:org/c[two]/a@{COMMIT}" in caught.value.next_step
    for what in ("", "[de]"):
        with pytest.raises(CorpusError, match="it has en, flat, two") as caught:
            load_corpus("sts", f"hub:org/c{what}/train")
        assert f"hub:org/c[en]/train@{COMMIT}" in caught.value.next_step


def test_a_large_file_is_streamed_when_a_few_rows_are_wanted(hub: FakeHub) -> None:
    passages = [{"_id": str(n), "title": "", "text": f"passage {n} " + "word " * 100} for n in range(60_000)]
    hub.repositories["mteb/msmarco"] = {"corpus.jsonl": json_lines(passages)}
    corpus = load_corpus("msmarco", "hub:mteb/msmarco@main", limit=3)
    assert [text.external_id for text in corpus.texts] == ["0", "1", "2"]
    assert 0 < hub.sent < len(hub.repositories["mteb/msmarco"]["corpus.jsonl"])


def test_the_default_pool_reads_every_part_in_order(hub: FakeHub) -> None:
    for number, part in enumerate(CORPORA["sts"].hub):
        name = part.files[0]
        row = {"sentence1": f"s{number}", "sentence2": "t", "score": float(number)}
        table = {column: [value] for column, value in row.items()}
        packed = gzip.compress(json_lines([row])) if name.endswith(".gz") else parquet(**table)
        assert part.revision is not None
        place_in_cache(part.repository, part.revision, name, packed)
    corpus = load_corpus("sts", "hub")
    assert [(pair.first, pair.score) for pair in corpus.pairs] == [(f"s{n}", float(n)) for n in range(11)]
    assert corpus.revision == "+".join(str(part.revision) for part in CORPORA["sts"].hub)
    # Their scores are on different scales: each stays a data set of its own.
    names = [part.repository.removeprefix("mteb/") for part in CORPORA["sts"].hub]
    assert [pair.data_set for pair in corpus.pairs] == names
    assert len(set(names)) == 11
    assert hub.requests == []


def place_in_cache(repository: str, commit: str, name: str, content: bytes) -> None:
    path = hub_cache() / f"datasets--{repository.replace('/', '--')}" / "snapshots" / commit / name
    path.parent.mkdir(parents=True)
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("source", "happened"),
    [
        ("hub:org/none", "has no data set org/none"),
        ("hub:org/sts@nope", "has data set org/sts, but no revision 'nope' of it"),
        ("hub:org/empty", "has no file in a supported format"),
        ("hub:org/sts/train.csv", "has no file train.csv"),
    ],
)
def test_what_the_hub_does_not_have_is_named(source: str, happened: str, hub: FakeHub) -> None:
    hub.repositories = {"org/sts": {"test.csv": b"sentence1,sentence2\na,b\n"}, "org/empty": {"logo.png": b""}}
    with pytest.raises(CorpusError, match=happened):
        load_corpus("sts", source)


def test_a_failing_hub_is_one_error(hub: FakeHub) -> None:
    hub.status = 503
    with pytest.raises(CorpusError, match=r"cannot be reached for data set mteb/imdb.* \(status 503\)") as caught:
        load_corpus("longdocs", "hub")
    assert "--corpus longdocs=FILE" in caught.value.next_step


def test_an_unreachable_hub_ends_at_once(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    with pytest.raises(CorpusError, match=r"cannot be reached for data set mteb/sts12-sts") as caught:
        load_corpus("sts", "hub")
    assert "pass a local file: --corpus sts=FILE" in caught.value.next_step
    assert sum(pauses) < 5


def test_a_silent_hub_ends_within_the_deadline(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "GIVE_UP_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(CorpusError, match=r"no answer within 0\.3 s"):
            load_corpus("wikipedia", "hub")


def test_offline_mode_is_an_error_that_names_the_repository(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(CorpusError, match="princeton-nlp/datasets-for-simcse"):
        load_corpus("wikipedia", "hub")
    assert hub.requests == []


@pytest.mark.usefixtures("prefect_api")
def test_a_hub_that_answers_again_is_read_at_the_second_attempt(hub: FakeHub, ingested: Ingested) -> None:
    hub.repositories["org/sts"] = {"test.csv": b"sentence1,sentence2\na,b\n"}
    hub.status, hub.ill_requests = 503, 1
    assert ingested("hub:org/sts").rows == 1
    assert len([request for request in hub.requests if request == "GET /api/datasets/org/sts/revision/main"]) == 2


@pytest.mark.usefixtures("prefect_api")
@pytest.mark.parametrize("reason", ["missing", "offline"])
def test_what_no_retry_can_mend_is_asked_for_once(
    reason: str, hub: FakeHub, ingested: Ingested, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    info = hub_module.Repository.info
    monkeypatch.setattr(hub_module.Repository, "info", lambda self: asked.append(self.name) or info(self))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", reason == "offline")
    with pytest.raises(CorpusError):
        ingested("hub:org/none")
    assert asked == ["org/none"]


@pytest.fixture
def ingested(tmp_path: Path) -> Ingested:
    """Runs the task that reads a corpus of pairs, trying again at once."""
    from prefect import flow

    from embaudit_tasks.steps import ingest_corpus

    @flow
    def ingest(source: str) -> StagedCorpus:
        (corpus,) = ingest_corpus.with_options(retry_delay_seconds=0)("sts", source, str(tmp_path / "staging"))
        return corpus

    return ingest


def test_whether_the_hub_answers_is_asked_in_one_place(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hub_module.answering_address() == hub.endpoint
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://someone:secret@127.0.0.1:9")
    with pytest.raises(HubUnreachable, match=r"127\.0\.0\.1:9 cannot be reached \(Connect(ion)?Error\)") as caught:
        hub_module.answering_address()
    assert "secret" not in str(caught.value)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(HubOffline):
        hub_module.answering_address()
