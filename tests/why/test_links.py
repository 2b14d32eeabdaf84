"""Links of the chain that a search is lost at, by the packaged checkpoint: of each kind, members and what is none."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest
from kept_texts import PACKAGED, Kept, named, parquet, walked
from stores.test_framework_folders import build as langchain_folder

import embaudit
from embaudit.words.errors import CorpusError
from tests.planted_indexes import written

pytestmark = pytest.mark.slow


def with_texts(kept: Kept, folder: Path, rows: Sequence[tuple[str, str]], **fields: str) -> Path:
    """The texts with more of them, of which the last one has these fields."""
    folder.mkdir()
    vectors = kept.of(*(text for _, text in rows))
    columns = kept.with_rows([(one, text, vector) for (one, text), vector in zip(rows, vectors, strict=True)])
    more: dict[str, list[object]] = {name: [None] * (len(columns[0]) - 1) + [value] for name, value in fields.items()}
    return parquet(columns, folder, **more)


POLICY = (
    "The travel policy of the company says that employees may book economy class for flights below six hours and must "
    "ask their manager for anything else. Receipts are handed in within thirty days of the journey."
)
WANTED = "A seat in the front of the plane is paid for by the office if the head of it has said so in writing."
CLASSES = [
    f"{one} class" for one in ["premium", "business", "first", "standard", "basic", "coach", "any", "low"]
] + list("abcdef")
REVISIONS = {
    "a number": [POLICY.replace("thirty", str(20 + n)) for n in range(14)],
    "a version before it": [f"Version {n}. {POLICY}" for n in range(14)],
    "a date behind it": [f"{POLICY} Revised in {2000 + n}." for n in range(14)],
    "a word": [POLICY.replace("economy class", one) for one in CLASSES],
}


@pytest.mark.parametrize("name", REVISIONS)
def test_revisions_of_one_document_stand_above(name: str, kept: Kept, tmp_path: Path) -> None:
    rows = [(f"v{n}", text) for n, text in enumerate(REVISIONS[name])]
    store = with_texts(kept, tmp_path / "s", [*rows, ("wanted", WANTED)])
    query = "may employees book business class for a flight, or economy class only?"
    assert named(walked(store, query, "wanted")) == ("cut-off", "copies")


FILES = {
    "underscores": ("q3_report_acme.pdf", "acme q3 report"),
    "a path with capitals": ("/docs/AcmeQuarterlyReport.docx", "the quarterly report of acme"),
    "dashes and numbers": ("acme-q3-2023.md", "acme q3 2023"),
}
SHORT = "The numbers rose by four percent against the year before, and costs fell."


@pytest.mark.parametrize("is_long", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_what_is_asked_for_stands_in_a_field(name: str, is_long: bool, kept: Kept, tmp_path: Path) -> None:
    file, query = FILES[name]
    text = " ".join(kept.texts[40:60]) if is_long else SHORT
    store = with_texts(kept, tmp_path / "s", [("wanted", text)], source=file)
    report = walked(store, query, "wanted")
    assert named(report) == ("text", "another field")
    assert "source" in report.lost[0].sentence
    # A field with other words explains nothing.
    other = with_texts(kept, tmp_path / "o", [("wanted", text)], source="minutes_of_may.pdf")
    assert named(walked(other, query, "wanted"))[1] != "another field"


@pytest.mark.parametrize("number", range(4))
def test_a_piece_of_an_unrelated_text_answers_nothing(number: int, kept: Kept, tmp_path: Path) -> None:
    text = " ".join(kept.texts[100 + 20 * number : 120 + 20 * number])
    store = with_texts(kept, tmp_path / "s", [("wanted", text)])
    assert named(walked(store, kept.queries[number][0], "wanted"))[0] != "text"


@pytest.mark.parametrize("number", range(6))
def test_a_sentence_behind_the_limit_answers(number: int, kept: Kept, tmp_path: Path) -> None:
    """Nothing else in the store does: its document is taken out."""
    query, expect = kept.queries[number]
    place = int(expect.removeprefix("row-"))
    filler = [text for one, text in enumerate(kept.texts) if one != place]
    start = 100 + 37 * number
    sentences = [one for one in kept.texts[place].split(". ") if len(one.split()) > 4]
    answer = sentences[int(np.argmax(kept.of(*sentences) @ kept.of(query)[0]))].rstrip(".") + "."
    text = " ".join([*filler[start : start + 12], answer, *filler[start + 12 :][:4]])
    store = with_texts(kept, tmp_path / "s", [(expect, "gone"), ("wanted", text)])
    report = walked(store, query, "wanted")
    assert named(report)[0] == "text", report.line


ENDS = {
    "the last line": ("{history}\nUser: {query}", "line"),
    "the last line but one": ("{history}\nUser: {query}\nThanks!", "line but one"),
    "the last sentence": ("{flat} {query}", "sentence"),
}


@pytest.mark.parametrize("name", ENDS)
def test_what_is_asked_stands_behind_the_limit_of_a_query(name: str, kept: Kept, tmp_path: Path) -> None:
    form, said = ENDS[name]
    query, expect = kept.queries[3]
    turns = [f"{'Assistant' if n % 2 else 'User'}: {text}" for n, text in enumerate(kept.texts[200:212])]
    asked = form.format(history="\n".join(turns), flat=" ".join(turns).replace("\n", " "), query=query)
    store = with_texts(kept, tmp_path / "s", [("x", SHORT)])
    report = walked(store, asked, expect)
    assert named(report) == ("function", "long query")
    assert f"by its last {said} alone" in report.lost[0].mend


VALUES: dict[str, tuple[str, str, tuple[str, str]]] = {
    # A field, what is typed, and what becomes of row 13, whose value is written so.
    "numbers": ("year", "2021", ("found", "")),
    "numbers and texts": ("mixed", "2021", ("filter", "type")),
    "truth": ("flag", "true", ("found", "")),
    "fractions": ("share", "6.5", ("found", "")),
    "another value": ("year", "2020", ("filter", "")),
}


@pytest.fixture(scope="module")
def chroma(kept: Kept, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two collections, the first with metadata of several types."""
    chromadb = pytest.importorskip("chromadb")
    folder = tmp_path_factory.mktemp("chroma")
    client = chromadb.PersistentClient(str(folder))
    for name, rows in (("faq-new", range(200)), ("faq-old", range(200, 400))):
        shape = {"hnsw": {"space": "cosine", "sync_threshold": 50, "batch_size": 50}}
        collection = client.create_collection(name, configuration=shape)
        for start in range(rows.start, rows.stop, 100):
            some = range(start, start + 100)
            collection.add(
                ids=[kept.ids[n] for n in some],
                documents=[kept.texts[n] for n in some],
                embeddings=kept.vectors[start : start + 100].tolist(),
                metadatas=[
                    {
                        "year": 2018 + n % 5,
                        "mixed": 2018 + n % 5 if n < 10 else str(2018 + n % 5),
                        "flag": bool(n % 2),
                        "share": n / 2,
                        "source_id": f"SRC-{n}",
                    }
                    for n in some
                ],
            )
    return folder


@pytest.mark.parametrize("name", VALUES)
def test_a_filter_has_a_type(name: str, kept: Kept, chroma: Path) -> None:
    field, value, wanted = VALUES[name]
    query = " ".join(kept.texts[13].split()[:12])
    report = walked(chroma, query, "row-13", from_table="faq-new", where={f"metadata.{field}": value})
    assert named(report) == wanted


ABSENT: dict[str, tuple[str, str, str]] = {
    "another part": ("row-210", "another part", "--from faq-old"),
    "another field": ("SRC-10", "another field", "--id metadata.source_id"),
    "a typo": ("Row_011", "", "--expect row-11"),
    "a word of its texts": ("nothing", "", "Put it into the index"),
    "nowhere": ("row-9999", "", "Put it into the index"),
}


@pytest.mark.parametrize("name", ABSENT)
def test_absent_is_what_was_looked_for_everywhere(name: str, kept: Kept, chroma: Path) -> None:
    expect, cause, mend = ABSENT[name]
    report = walked(chroma, kept.queries[0][0], expect, from_table="faq-new")
    assert named(report) == ("absent", cause)
    assert mend in report.lost[0].mend


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_ids_of_the_file_of_texts_are_its_rows(ending: str, kept: Kept, tmp_path: Path) -> None:
    index = faiss.IndexFlatIP(kept.vectors.shape[1])
    index.add(np.ascontiguousarray(kept.vectors, dtype=np.float32))
    store = written(index, tmp_path / "rows.faiss")
    texts = tmp_path / f"texts.{ending}"
    rows = [(f"policy-{n}", " ".join(text.split())) for n, text in enumerate(kept.texts)]
    lines = [json.dumps({"id": one, "text": text}) for one, text in rows]
    if ending == "csv":
        lines = ["doc_id,text", *(f"{one},{json.dumps(text.replace(chr(34), ''))}" for one, text in rows)]
    texts.write_text("\n".join(lines) + "\n", encoding="utf-8")
    cases = {query: f"policy-{expect.removeprefix('row-')}" for query, expect in kept.queries[:12]}
    report = embaudit.why(store, PACKAGED, {**cases, "who is lost": "policy-9999"}, texts=texts, device="cpu")
    assert report.counts == {"found": 12, "absent": 1}


def test_a_collection_that_was_copied_without_its_folder(chroma: Path, tmp_path: Path) -> None:
    shutil.copy(chroma / "chroma.sqlite3", tmp_path)
    with pytest.raises(CorpusError, match=r"lacks the folder .* the vectors of collection faq-new"):
        embaudit.why(tmp_path, PACKAGED, "a query", "row-1", from_table="faq-new", device="cpu")


def test_of_an_index_of_another_function_that_is_said(kept: Kept, tmp_path: Path) -> None:
    foreign = np.random.default_rng(0).normal(size=kept.vectors.shape).astype(np.float32)
    store = parquet((kept.ids, kept.texts, list(foreign)), tmp_path)
    report = walked(store, *kept.queries[0])
    assert named(report) == ("vector", "foreign index")


@pytest.mark.parametrize(("rows", "is_said"), [(20, True), (600, False)])
def test_lists_that_were_made_on_few_rows(rows: int, is_said: bool, kept: Kept, tmp_path: Path) -> None:
    vectors = np.ascontiguousarray(kept.vectors, dtype=np.float32)
    index: Any = faiss.index_factory(vectors.shape[1], "IVF20,Flat", faiss.METRIC_INNER_PRODUCT)
    index.train(vectors[:rows])
    index.add(vectors)
    store = written(index, tmp_path / "rows.faiss")
    texts = tmp_path / "texts.txt"
    texts.write_text("".join(f"{' '.join(text.split())}\n" for text in kept.texts), encoding="utf-8")
    cases = {" ".join(kept.texts[n].split()[:8]): str(n) for n in range(0, len(vectors), 9)}
    report = embaudit.why(store, PACKAGED, cases, texts=texts, device="cpu")
    assert "search" in report.counts
    assert any("lists were made on about as many rows" in one.sentence for one in report.findings) == is_said


def test_a_cut_off_of_langchain_is_its_relevance(kept: Kept, tmp_path: Path) -> None:
    """1 − d²/√2 of a cosine of .6 is .43."""
    titles = ["" for _ in kept.ids]
    store = Path(langchain_folder(tmp_path, kept.vectors.astype(np.float32), kept.texts, kept.ids, titles))
    query, expect = kept.queries[0]
    cosine = float(kept.of(query)[0] @ kept.vectors[int(expect.removeprefix("row-"))])
    relevance = 1 - (2 - 2 * cosine) / 2**0.5
    assert relevance < cosine - 0.05
    report = walked(store, query, expect, min_score=(relevance + cosine) / 2)
    assert named(report) == ("cut-off", "score")
    assert f"relevance of it, {relevance:.2f}" in report.lost[0].sentence
    assert named(walked(store, query, expect, min_score=relevance - 0.01)) == ("found", "")
