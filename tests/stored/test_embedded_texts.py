"""What was embedded: which column of texts, which fields in which template; the function's vectors tell."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from some_rows import mostly_slow

import embaudit
from embaudit.checkpoint import Encoder, TextKind
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.embedders.function import Answers, EmbeddingFunction
from embaudit.questions.parity.compare import apart
from embaudit.questions.vectors.embedded import MOST_PAID, FieldedRows, what_was_embedded
from embaudit.questions.vectors.forms import StoredForm
from embaudit.questions.vectors.report import StoredReport
from embaudit.stores.template import Template
from embaudit.words.errors import EmbauditError


def written(folder: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), folder / "rows.parquet")
    return folder / "rows.parquet"


def others(texts: list[str]) -> list[str]:
    return [f"another text, of {len(text)} letters and more" for text in texts]


@pytest.mark.parametrize("foreign", [0, 150])
@pytest.mark.parametrize("names", [("text", "content"), ("content", "text"), ("sentence_chunks", "of the page")])
def test_the_column_whose_texts_give_the_vectors_is_the_one(
    names: tuple[str, str], foreign: int, tiny_index: Any, tmp_path: Path
) -> None:
    """Whether both are called as texts are, or none is; and if a part of the rows is of another function."""
    vectors = tiny_index.vectors.copy()
    vectors[:foreign] = tiny_index.others[:foreign]
    own, other = names
    place = written(tmp_path, **{other: others(tiny_index.texts), own: tiny_index.texts, "v": list(vectors)})
    report = embaudit.vectors(place, tiny_index.folder, device="cpu", rows=600, with_explanation=False)
    assert report.index.columns["text"] == own
    assert report.verdict == ("not wholly its own" if foreign else "wholly its own")
    assert report.against is not None
    assert int(report.against.is_foreign.sum()) == foreign


def test_where_none_gives_the_vectors_it_is_asked(tiny_index: Any, tmp_path: Path) -> None:
    texts = {"text": others(tiny_index.texts), "content": others(tiny_index.texts[::-1])}
    place = written(tmp_path, **texts, v=list(tiny_index.vectors))
    with pytest.raises(EmbauditError, match="2 columns that may be the texts: text, content"):
        embaudit.vectors(place, tiny_index.folder, device="cpu")
    place = written(tmp_path, a=texts["text"], b=texts["content"], v=list(tiny_index.vectors))
    report = embaudit.vectors(place, tiny_index.folder, device="cpu")
    assert report.verdict == "could not be told"


def test_a_table_without_names_needs_none(tiny_index: Any, tmp_path: Path) -> None:
    rows = zip(tiny_index.texts, tiny_index.vectors.tolist(), strict=True)
    lines = [f"{row}\t{text}\t{json.dumps(vector)}" for row, (text, vector) in enumerate(rows)]
    (tmp_path / "rows.tsv").write_text("\n".join(lines), encoding="utf-8")
    report = embaudit.vectors(tmp_path / "rows.tsv", tiny_index.folder, device="cpu", rows=50)
    assert report.verdict == "wholly its own"
    assert report.index.columns["text"] == "column 2"


def test_equal_columns_are_one(tiny_index: Any, tmp_path: Path) -> None:
    same = {"document": tiny_index.texts, "content": tiny_index.texts}
    place = written(tmp_path, **same, v=list(np.asarray(tiny_index.vectors)))
    report = embaudit.vectors(place, tiny_index.folder, device="cpu", rows=50)
    assert report.verdict == "wholly its own"


# ---- templates ----


ROWS = 60
WORDS = [
    *("river", "town", "house", "school", "music", "water", "king", "church"),
    *("gold", "fire", "plant", "bird", "winter", "stone", "ship"),
]


def rows_of(tiny_index: Any) -> list[dict[str, Any]]:
    return [
        {
            "title": f"{WORDS[n % 15]} of the {WORDS[(n * 7 + 3) % 15]} {n}",
            "author": f"{WORDS[(n * 4 + 1) % 15]} {WORDS[n % 11]}",
            "page": n * 3 + 1,
            "is_old": n % 2 == 0,
            "text": text,
        }
        for n, text in enumerate(tiny_index.texts[:ROWS])
    ]


def as_read(text: str) -> str:
    """As the tiny checkpoint reads it."""
    return " ".join(text.lower().split())


def compared(
    tiny_index: Any, folder: Path, rows: Sequence[dict[str, Any]], vectors: np.ndarray, **options: bool
) -> StoredReport:
    columns = {name: [row.get(name) for row in rows] for name in rows[0]}
    pq.write_table(pa.table({**columns, "embedding": list(vectors)}), folder / "i.parquet")
    return embaudit.vectors(folder / "i.parquet", tiny_index.folder, device="cpu", rows=40, **options)


def encoded(tiny_index: Any, texts: Sequence[str], other: bool = False) -> np.ndarray:
    return Encoder(tiny_index.load(other)).encode_texts(list(texts))


TEMPLATES = [
    "{title} {text}",
    "{title}. {text}",
    "{title}: {text}",
    "{title} - {text}",
    "{title} [SEP] {text}",
    "{text} {title}",
    "{title} {author} {text}",
    "{author}, {title}: {text}",
    "title: {title}\\nauthor: {author}\\npage: {page}\\nis_old: {is_old}\\n\\n{text}",
    "title: {title}\\n\\n{text}",
    "author: {author}\\npage: {page}\\n\\n{text}",
    "<document_metadata>\\n{}sourceDocument: {title}\\n</document_metadata>\\n\\n{text}",
    "title: {title}\\ntext: {text}",
    "{title}",
    "passage: {title} {text}",
    "Page: {page} {text}",
    "{title} | {text}",
]


@pytest.mark.parametrize("written", mostly_slow(TEMPLATES, TEMPLATES[6:10]))
def test_what_was_embedded_is_named(written: str, tiny_index: Any, tmp_path: Path) -> None:
    rows, template = rows_of(tiny_index), Template.of(written)
    texts = [template.text(row) or "" for row in rows]
    report = compared(tiny_index, tmp_path, rows, encoded(tiny_index, texts))
    assert report.embedded is not None
    assert [as_read(report.embedded.template.text(row) or "") for row in rows] == [as_read(one) for one in texts]
    assert report.verdict == "wholly its own"
    assert Template.of(report.embedded.template.written) == report.embedded.template
    assert report.as_json()["what_was_embedded"]["template"] == report.embedded.template.written


@pytest.mark.parametrize("written", ["{title} {text}", "title: {title}\\nauthor: {author}\\n\\n{text}"])
def test_fields_that_rows_lack_are_left_out(written: str, tiny_index: Any, tmp_path: Path) -> None:
    rows, template = rows_of(tiny_index), Template.of(written)
    for row in rows[::5]:
        row["title"] = None
    texts = [template.text(row) or "" for row in rows]
    report = compared(tiny_index, tmp_path, rows, encoded(tiny_index, texts))
    assert report.verdict == "wholly its own"


def test_braces_in_values_are_no_fields() -> None:
    assert Template.of("{title}\\n{text}").text({"title": "{text}", "text": "ü {title}"}) == "{text}\nü {title}"
    template = Template.of("\\{a\\}: {title|None}{text:.3}{:.12}")
    assert template.text({"text": "abcdef"}) == "{a}: Noneabc"
    assert Template.of(template.written) == template


@pytest.mark.parametrize("titled", [45, 15])
def test_the_majority_says_what_was_embedded(titled: int, tiny_index: Any, tmp_path: Path) -> None:
    rows = rows_of(tiny_index)
    texts = [f"{row['title']} {row['text']}" if n < titled else row["text"] for n, row in enumerate(rows)]
    report = compared(tiny_index, tmp_path, rows, encoded(tiny_index, texts))
    assert report.verdict == "not wholly its own"
    assert report.against is not None
    assert (report.index.template is not None) is (titled == 45)
    (reason,) = report.against.reasons
    assert ("alone" in reason.said) is (titled == 45)
    assert int(report.against.is_foreign.sum()) == len(reason.places)


def _hardly_trained(ours: np.ndarray) -> np.ndarray:
    noise = np.random.default_rng(0).normal(size=ours.shape)
    return (ours + 0.08 * noise / np.linalg.norm(noise, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("how", mostly_slow(["another", "hardly trained", "mixed up", "noise"], 1))
def test_no_template_explains_a_foreign_index(how: str, tiny_index: Any, tmp_path: Path) -> None:
    rows = rows_of(tiny_index)
    ours = tiny_index.vectors[:ROWS]
    made: dict[str, Callable[[], np.ndarray]] = {
        "another": lambda: encoded(tiny_index, [f"{row['title']} {row['text']}" for row in rows], other=True),
        "hardly trained": lambda: _hardly_trained(ours),
        "mixed up": lambda: np.random.default_rng(1).permutation(ours),
        "noise": lambda: np.random.default_rng(2).normal(size=ours.shape).astype(np.float32),
    }
    report = compared(tiny_index, tmp_path, rows, made[how](), with_explanation=False)
    assert report.embedded is None
    assert report.verdict == "not wholly its own"


class Paid(EmbeddingFunction):
    """A function without an inside that counts what it is asked."""

    def __init__(self, inner: EmbeddingFunction) -> None:
        self.inner, self.asked, self.name = inner, 0, "paid"

    def encode(self, texts: Sequence[str], role: TextKind = "text", **options: Any) -> Answers:
        self.asked += len(texts)
        return self.inner.encode(texts, "text")


@pytest.mark.parametrize("is_own", [True, False])
def test_a_function_that_may_cost_money_is_asked_for_few_texts(is_own: bool, tiny_index: Any) -> None:
    rows = rows_of(tiny_index)[:30]
    texts = [f"{row['title']} {row['text']}" for row in rows]
    vectors = encoded(tiny_index, texts, other=not is_own)
    paid = Paid(CheckpointFunction(tiny_index.load()))
    form = StoredForm("", apart)
    alone = form.distance(encoded(tiny_index, [row["text"] for row in rows]), vectors)
    found = what_was_embedded(paid, form, FieldedRows(rows, vectors, alone), ["title", "author", "page"], "text")
    assert (found is not None) is is_own
    assert 0 < paid.asked <= MOST_PAID
    assert found is None or found.asked == paid.asked
