"""Retrieval collections: BEIR folders, LongEmbed's, QMSum's meetings, the hub, and what they lack."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_hub import COMMIT, FakeHub, json_lines

from embaudit.corpora.folders import read_retrieval
from embaudit.corpora.judged import label_of, load_judged, own_of, relevant_of
from embaudit.corpora.load import load_corpus
from embaudit.words.errors import CorpusError

Write = Callable[[str, bytes | str], str]
DOCUMENTS = [
    {"_id": "d1", "title": "T", "text": "one"},
    {"_id": "d2", "title": "", "text": "two"},
    {"_id": "d3", "title": "", "text": "two"},
    {"_id": "d4", "title": "", "text": " "},
    {"_id": "d5", "title": "", "text": "five"},
]
QUERIES = [{"_id": "q1", "text": "first?"}, {"_id": "q2", "text": "second?"}, {"_id": "q3", "text": "first?"}]


@pytest.fixture
def beir(write: Write, tmp_path: Path) -> str:
    write("beir/corpus.jsonl", json_lines(DOCUMENTS))
    write("beir/queries.jsonl", json_lines(QUERIES))
    rows = ("query-id\tcorpus-id\tscore", "q1\td1\t2", "q1\td5\t0", "q2\td3\t1", "q3\td5\t1", "q3\td1\t1", "q2\td9\t1")
    write("beir/qrels/test.tsv", "\n".join(rows) + "\n")
    write("beir/qrels/train.tsv", "query-id\tcorpus-id\tscore\nq2\td5\t1\n")
    return str(tmp_path / "beir")


def test_a_beir_folder_is_documents_and_queries_that_name_them(beir: str) -> None:
    judged = load_judged(beir)
    assert [text.text for text in judged.documents.texts] == ["T one", "two", "five"]
    assert (judged.documents.counts.duplicate, judged.documents.counts.blank) == (1, 1)
    # d3 says what d2 says; two queries of one text are one; the train split and the grade of 0 count for nothing.
    assert {text.text: relevant_of(text.label or "") for text in judged.queries.texts} == {
        "first?": {0: 2.0, 2: 1.0},
        "second?": {1: 1.0},
    }
    assert judged.queries.counts.broken == 1  # d9 is in no corpus.jsonl
    assert (judged.documents.name, judged.queries.name) == ("retrieval", "retrieval-queries")


def test_what_is_judged_is_part_of_the_content(beir: str) -> None:
    before = load_judged(beir)
    path = Path(beir) / "qrels" / "test.tsv"
    path.write_text(path.read_text().replace("q2\td3\t1", "q2\td5\t1"))
    after = load_judged(beir)
    assert after.documents.corpus_id == before.documents.corpus_id
    assert after.queries.corpus_id != before.queries.corpus_id


def test_labels_read_back() -> None:
    assert relevant_of(label_of({3: 1.0, 12: 0.30000000000000004})) == {3: 1.0, 12: 0.30000000000000004}


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({"title": "Its title", "text": ""}, "Its title"),
        ({"title": "Its title", "text": " "}, "Its title"),
        ({"title": "Its title", "text": None}, "Its title"),
        ({"title": "Its title"}, "Its title"),
        ({"title": " ", "text": "its text"}, "its text"),
        ({"title": "", "text": ""}, None),
        ({"title": None, "text": None}, None),
    ],
)
def test_a_document_without_text_is_its_title(
    write: Write, tmp_path: Path, document: dict[str, str | None], text: str | None
) -> None:
    write("f/corpus.jsonl", json_lines([{"_id": "a", **document}, {"_id": "b", "title": "", "text": "two"}]))
    write("f/queries.jsonl", json_lines([{"_id": "x", "text": "which?"}, {"_id": "y", "text": "what?"}]))
    write("f/qrels/test.tsv", "x\ta\t1\ny\tb\t1\n")
    write("f/qrels/train.tsv", "x\tb\t0\n")
    judged = load_judged(str(tmp_path / "f"))
    passages = load_corpus("msmarco", str(tmp_path / "f"))
    for read in (judged.documents, passages):
        assert [one.text for one in read.texts] == ([text] if text else []) + ["two"]
    assert [one.text for one in judged.queries.texts] == (["which?"] if text else []) + ["what?"]
    task = read_retrieval(tmp_path / "f")
    assert task.passages == (*([text] if text else []), "two")
    # Where it is dropped, it is counted, and so is its judgement.
    for counts in (judged.documents.counts, passages.counts):
        assert counts.blank + counts.broken == (not text)
    assert judged.queries.counts.broken == (not text)
    assert len(task.flaws) == (not text)


@pytest.mark.parametrize(
    ("qrels", "label"),
    [
        ({"a": 1}, "0:1.0 1:own"),
        ({"a": 1, "b": 0}, "0:1.0 1:own"),
        # Judged relevant, a document answers the query whatever its id: both sides are merely numbered.
        ({"a": 1, "b": 2}, "0:1.0 1:2.0"),
        # A query without a relevant document cannot be scored and is left out.
        ({"a": 0, "b": 0}, None),
        ({"a": -1}, None),
    ],
)
def test_a_document_of_a_querys_id_is_its_own(
    write: Write, tmp_path: Path, qrels: dict[str, int], label: str | None
) -> None:
    documents = [{"_id": "a", "text": "one"}, {"_id": "b", "text": "two"}, {"_id": "c", "text": "three"}]
    write("f/corpus.jsonl", json_lines(documents))
    write("f/queries.jsonl", json_lines([{"_id": "b", "text": "two?"}, {"_id": "x", "text": "which?"}]))
    judged = [*qrels.items(), ("c", 0)]
    write("f/qrels/test.tsv", "".join(f"b\t{name}\t{grade}\n" for name, grade in judged) + "x\tc\t1\n")
    found = {text.text: text.label for text in load_judged(str(tmp_path / "f")).queries.texts}
    assert found == {"which?": "2:1.0"} | ({} if label is None else {"two?": label})
    if label is not None:
        assert label_of(relevant_of(label), own_of(label)) == label


def test_no_judgements_and_no_relevant_ones_are_said(beir: str, write: Write) -> None:
    write("beir/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t0\n")
    with pytest.raises(CorpusError, match="has no relevant document"):
        load_judged(beir)
    for name in ("test.tsv", "train.tsv"):
        (Path(beir) / "qrels" / name).unlink()
    with pytest.raises(CorpusError, match="has no relevance judgements"):
        load_judged(beir)
    with pytest.raises(CorpusError, match="There is no file or folder"):
        load_judged(f"{beir}-2")


def test_meetings_are_documents_that_their_specific_queries_ask_for(write: Write) -> None:
    def meeting(*spoken: str, asked: list[str]) -> dict[str, object]:
        return {
            "meeting_transcripts": [{"speaker": "A", "content": one} for one in spoken],
            "general_query_list": [{"query": "Summarize the whole meeting."}],
            "specific_query_list": [{"query": one, "answer": "…"} for one in asked],
        }

    path = write("qmsum.jsonl", json_lines([meeting("hello", "bye", asked=["x?", "y?"]), meeting("no", asked=["z?"])]))
    judged = load_judged(path)
    assert [text.text for text in judged.documents.texts] == ["A: hello\nA: bye", "A: no"]
    assert [(text.text, text.label) for text in judged.queries.texts] == [
        ("x?", "0:1.0"),
        ("y?", "0:1.0"),
        ("z?", "1:1.0"),
    ]
    with pytest.raises(CorpusError, match="contains no meetings"):
        load_judged(write("other.jsonl", '{"text": "no meeting"}\n'))


def test_longembed_from_the_hub_and_from_its_folder(hub: FakeHub, write: Write, tmp_path: Path) -> None:
    files = {
        "qmsum/corpus.jsonl": json_lines([{"doc_id": "a", "text": "long"}, {"doc_id": "b", "text": "longer"}]),
        "qmsum/queries.jsonl": json_lines([{"qid": "1", "text": "which?"}, {"qid": "2", "text": "whose?"}]),
        "qmsum/qrels.jsonl": json_lines([{"qid": "1", "doc_id": "b"}, {"qid": "2", "doc_id": "a"}]),
    }
    hub.repositories["dwzhu/LongEmbed"] = {
        name: content.encode() if isinstance(content, str) else content for name, content in files.items()
    }
    online = load_judged("hub:dwzhu/LongEmbed/qmsum")
    assert online.documents.revision == COMMIT
    assert [text.label for text in online.queries.texts] == ["1:1.0", "0:1.0"]
    for name, content in files.items():
        write(name, content)
    local = load_judged(str(tmp_path / "qmsum"))
    assert local.queries.corpus_id == online.queries.corpus_id
    assert local.documents.corpus_id == online.documents.corpus_id


def test_a_judgement_record_without_a_document_is_a_flaw(write: Write, tmp_path: Path) -> None:
    write("f/corpus.jsonl", json_lines([{"_id": "a", "text": "x"}, {"_id": "b", "text": "y"}]))
    write("f/queries.jsonl", json_lines([{"_id": "1", "text": "q"}]))
    write(
        "f/qrels.jsonl",
        json_lines([{"qid": "1"}, {"qid": "1", "doc_id": "a", "score": "high"}, {"qid": 1, "doc_id": "b"}]),
    )
    judged = load_judged(str(tmp_path / "f"))
    assert [text.label for text in judged.queries.texts] == ["1:1.0"]
    assert judged.queries.counts.broken == 2


def test_the_real_collections_are_read(shared: Path) -> None:
    scifact = load_judged(str(shared / "data/retrieval/scifact"))
    assert (len(scifact.documents.texts), len(scifact.queries.texts)) == (5183, 300)
    meetings = load_judged(str(shared / "data/longdocs/qmsum_test.jsonl.gz"))
    assert (len(meetings.documents.texts), len(meetings.queries.texts)) == (35, 242)


def test_json_lines_is_what_it_says() -> None:
    assert json.loads(json_lines([{"a": 1}])) == {"a": 1}
