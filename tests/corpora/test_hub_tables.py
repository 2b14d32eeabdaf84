"""What ``datasets`` reads of the hub: every format, columns by name, and what is said of those that do not fit."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fake_hub import COMMIT, FakeHub, json_lines

from embaudit.corpora.load import load_corpus
from embaudit.words.errors import CorpusError, HubUnreachable

TEXTS = ["one, with a comma", "NA", "null", "a \u2028 separator", "Ünïcode"]


def parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=2)
    return sink.getvalue()


def arrow(table: pa.Table, *, stream: bool) -> bytes:
    sink = io.BytesIO()
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def formats() -> dict[str, bytes]:
    table = pa.table({"text": TEXTS, "vector": [[0.5]] * len(TEXTS)})
    lines = json_lines([{"text": text, "meta": {"a": [1]}} for text in TEXTS])
    csv = "id,text\n" + "".join(f'{row},"{text}"\n' for row, text in enumerate(TEXTS))
    return {
        "test.parquet": parquet(table),
        "test.arrow": arrow(table, stream=True),
        "data/test-00000-of-00001.arrow": arrow(table, stream=False),
        "test.jsonl": lines,
        "test.jsonl.gz": gzip.compress(lines),
        "test.json": b"[" + b",".join(lines.splitlines()) + b"]",
        "test.csv": csv.encode(),
        "test.tsv": csv.replace(",one", "\tone").replace(",", "\t").replace("one\t", "one,").encode(),
        "test.txt": "".join(f"{text}\n" for text in TEXTS).encode(),
    }


@pytest.mark.parametrize("name", formats())
@pytest.mark.parametrize("first", ["", "[:9]"], ids=["fetched", "streamed"])
def test_every_format_gives_the_same_corpus_fetched_and_streamed(name: str, first: str, hub: FakeHub) -> None:
    hub.repositories["org/d"] = {name: formats()[name], "picture.png": b"", "notes.md": b""}
    corpus = load_corpus("wikipedia", f"hub:org/d{first}")
    assert [text.text for text in corpus.texts] == TEXTS
    assert corpus.source == f"hub:org/d/{'test'}{first}@{COMMIT}"


def test_first_rows_are_counted_before_they_are_judged(hub: FakeHub) -> None:
    hub.repositories["org/d"] = {"test.txt": b"a\na\n\nb\n"}
    counts = load_corpus("wikipedia", "hub:org/d/test[:3]").counts
    assert (counts.read, counts.kept, counts.duplicate, counts.blank) == (3, 1, 1, 1)


def test_columns_are_named_in_the_order_of_the_pair(hub: FakeHub) -> None:
    rows = [{"premise": "a", "hypothesis": "b", "gold": 2, "sentence1": "no"}]
    hub.repositories["org/d"] = {"test.jsonl": json_lines(rows)}
    (pair,) = load_corpus("sts", "hub:org/d:premise,hypothesis,gold").pairs
    assert (pair.first, pair.second, pair.score) == ("a", "b", 2.0)
    (pair,) = load_corpus("sts", "hub:org/d:hypothesis,premise").pairs
    assert (pair.first, pair.second, pair.score) == ("b", "a", None)
    (pair,) = load_corpus("msmarco-hard-negatives", "hub:org/d:premise,hypothesis").pairs
    assert (pair.first, pair.second, pair.relation) == ("a", "b", "hard_negative")


def test_a_named_column_is_the_text_and_ids_and_labels_stay(hub: FakeHub) -> None:
    rows = [{"id": 7, "text": "no", "abstract": "yes", "label": "news"}]
    hub.repositories["org/d"] = {"test.jsonl": json_lines(rows)}
    (text,) = load_corpus("longdocs", "hub:org/d:abstract").texts
    assert (text.text, text.external_id, text.label) == ("yes", "7", "news")


@pytest.mark.parametrize(
    ("corpus", "columns", "happened", "answer"),
    [
        ("wikipedia", "", "no text column", "abstract (string), label (int64)"),
        ("wikipedia", ":abstrakt", "no column abstrakt", "abstract (string), label (int64)"),
        (
            "wikipedia",
            ":label",
            "Column label of hub:org/d/.* contains int64, not text",
            "abstract (string), label (int64)",
        ),
        ("wikipedia", ":abstract,label", "needs columns text", "Name 1 of its columns"),
        ("sts", "", "no columns sentence1 and sentence2", f"hub:org/d/test@{COMMIT}:FIRST,SECOND"),
        ("sts", ":abstract", "needs columns sentence1, sentence2, score", "Name 2 or 3 of its columns"),
        ("sts", ":abstract,label", "Column label", f"hub:org/d/test@{COMMIT}:FIRST,SECOND"),
        ("msmarco-positives", "", "no columns query and positive", "abstract (string)"),
    ],
)
@pytest.mark.parametrize("name", ["test.parquet", "test.csv"])
def test_columns_that_do_not_fit_are_answered_with_those_that_exist(
    corpus: str, columns: str, happened: str, answer: str, name: str, hub: FakeHub
) -> None:
    table = pa.table({"abstract": ["a text"], "label": [3]})
    hub.repositories["org/d"] = {name: parquet(table) if name == "test.parquet" else b"abstract,label\na text,3\n"}
    with pytest.raises(CorpusError, match=happened) as caught:
        load_corpus(corpus, f"hub:org/d{columns}")
    assert answer in str(caught.value)


def test_other_columns_of_a_parquet_file_are_not_sent(hub: FakeHub) -> None:
    noise = [bytes([row]) * 200_000 for row in range(100)]
    table = pa.table({"picture": noise, "text": [f"text {row}" for row in range(100)]})
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=10, compression="none", use_dictionary=False)
    hub.repositories["org/d"] = {"test.parquet": sink.getvalue()}
    assert load_corpus("wikipedia", "hub:org/d/test[:100]").counts.kept == 100
    assert hub.sent < len(sink.getvalue())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("test.jsonl", b'{"text": "a"}\n{"text": \n'),
        ("test.txt", b"a\n\xff\n"),
        ("test.csv", b'text\na\n"b\n'),
        ("test.parquet", b"PAR1 and nothing"),
        ("test.arrow", b"no arrow"),
        ("test.jsonl.gz", gzip.compress(b'{"text": "a"}\n')[:-9]),
    ],
    # Not the bytes: gzip's have the time in them, and every worker must give a test the same name.
    ids=["jsonl", "txt", "csv", "parquet", "arrow", "gz"],
)
@pytest.mark.parametrize("first", ["", "[:9]"], ids=["fetched", "streamed"])
def test_a_broken_file_is_an_error_that_says_how_to_count_its_rows(
    name: str, content: bytes, first: str, hub: FakeHub
) -> None:
    hub.repositories["org/d"] = {name: content}
    with pytest.raises(CorpusError, match=f"hub:org/d/{name}@{COMMIT[:12]} cannot be read") as caught:
        load_corpus("wikipedia", f"hub:org/d{first}")
    assert not isinstance(caught.value, HubUnreachable)
    answer = caught.value.next_step
    assert "broken rows are dropped and counted: --corpus wikipedia=" in answer
    if first:
        assert f"hf download org/d {name} --repo-type dataset --revision {COMMIT}" in answer
    else:
        assert Path(answer.rsplit("=", 1)[1]).read_bytes() == content


@pytest.mark.parametrize("name", ["test.jsonl", "test.json", "test.txt", "test.jsonl.gz"])
def test_an_empty_file_has_no_rows(name: str, hub: FakeHub) -> None:
    hub.repositories["org/d"] = {name: gzip.compress(b"") if name.endswith(".gz") else b""}
    with pytest.raises(CorpusError, match=r"is empty: .* gave 0 rows read"):
        load_corpus("wikipedia", "hub:org/d")


def test_a_script_is_refused_with_the_ways_around_it(hub: FakeHub) -> None:
    hub.repositories["org/d"] = {"d.py": b"raise SystemExit", "data.csv": b"text\na\n"}
    with pytest.raises(CorpusError, match=r"defines its splits in code \(d\.py\)") as caught:
        load_corpus("wikipedia", "hub:org/d[en]/test")
    assert "hub:org/d/en/test/*.parquet@refs/convert/parquet" in caught.value.next_step
    assert load_corpus("wikipedia", "hub:org/d/data.csv").counts.kept == 1


def test_names_that_lead_out_of_the_repository_are_passed_over(hub: FakeHub) -> None:
    hub.repositories["org/d"] = {"a.csv": b"text\na\n", "../../../b.csv": b"text\nb\n", "/c.csv": b"text\nc\n"}
    for what in ("", "/*.csv"):
        assert [text.text for text in load_corpus("wikipedia", f"hub:org/d{what}").texts] == ["a"]


@pytest.mark.parametrize("first", ["", "[:9]"], ids=["fetched", "streamed"])
def test_a_gated_data_set_says_how_to_be_let_in(first: str, hub: FakeHub) -> None:
    hub.repositories["org/d"] = {"test.csv": b"text\na\n"}
    hub.gated.add("org/d")
    with pytest.raises(CorpusError, match="is gated") as caught:
        load_corpus("wikipedia", f"hub:org/d{first}")
    assert "hf auth login" in caught.value.next_step


@pytest.mark.parametrize(
    ("card", "reason"),
    [
        ("configs: [\n", "card README.md of the data set cannot be read"),
        ("configs:\n- config_name: a\n  data_files: none*.csv\n", "No .* data files found in it"),
    ],
)
def test_a_card_that_is_wrong_is_said_without_our_own_paths(card: str, reason: str, hub: FakeHub) -> None:
    hub.repositories["org/d"] = {"README.md": f"---\n{card}---\n".encode(), "test.csv": b"text\na\n"}
    with pytest.raises(CorpusError, match=reason) as caught:
        load_corpus("wikipedia", "hub:org/d[a]")
    assert "/tmp" not in str(caught.value)


def test_a_hub_that_goes_away_in_the_middle_of_a_stream_is_unreachable(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    files = {f"data/test-{n:05d}-of-00002.jsonl": json_lines([{"text": f"{n}"}]) for n in range(2)}
    hub.repositories["org/d"] = files
    hub.ill_after = "00001-of"
    with pytest.raises(HubUnreachable, match=r"file data/test-00001-of-00002\.jsonl"):
        load_corpus("wikipedia", "hub:org/d/test[:5]")


@pytest.mark.slow
def test_nothing_is_printed_and_no_other_cache_is_left(hub: FakeHub, tmp_path: Path) -> None:
    hub.repositories["org/d"] = {f"data/test-{n:05d}-of-00020.csv": b"text\n%d\n" % n for n in range(20)}
    hub.repositories["org/d"]["README.md"] = b"no metadata"
    hub.repositories["org/d"] = {
        name: body.replace(b"\n", b"\na", 1) for name, body in hub.repositories["org/d"].items()
    }
    code = "from embaudit.corpora.load import load_corpus; print(load_corpus('wikipedia', 'hub:org/d').counts.kept)"
    where = {
        "HF_ENDPOINT": hub.endpoint,
        "HF_HOME": str(tmp_path / "hf"),
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
    }
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=where)
    assert (done.stdout, done.stderr) == ("20\n", "")
    assert [path.name for path in (tmp_path / "hf").iterdir()] == ["hub"]
    assert {path.name for path in tmp_path.iterdir()} <= {"hf", "hub-cache", ".cache"}
