"""What should be in an index: rows that never came, rows that nobody expects, texts that changed since."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import embaudit
from embaudit.words.errors import CorpusError, UsageError

TEXTS = {f"doc-{number}": f"the river and the stone {number}" for number in range(40)}


@pytest.fixture
def index(tmp_path: Path) -> Callable[..., Path]:
    """A store of these documents; ``pieces``: how many rows each has, with its file's name in a field."""

    def write(texts: dict[str, str], pieces: int = 0) -> Path:
        names = [name for name in texts for _ in range(max(pieces, 1))]
        rows = {
            "id": [f"{name}#{place}" for place, name in enumerate(names)] if pieces else names,
            "text": [texts[name] for name in names],
            "vector": list(np.random.default_rng(0).normal(size=(len(names), 8)).astype(np.float32)),
        }
        if pieces:
            rows["source"] = [f"/data/corpus/{name}.md" for name in names]
        pq.write_table(pa.table(rows), tmp_path / "index.parquet")
        return tmp_path / "index.parquet"

    return write


def found(report: Any) -> dict[str, tuple[str, str]]:
    names = ("absent_rows", "unexpected_rows", "changed_texts", "fewest_rows")
    return {one.name: (one.level, one.sentence) for one in report.findings if one.name in names}


def lines(path: Path, texts: dict[str, str]) -> None:
    path.write_text("\n".join(texts))


def table(path: Path, texts: dict[str, str]) -> None:
    path.write_text("id,text\n" + "".join(f"{name},{text}\n" for name, text in texts.items()))


def records(path: Path, texts: dict[str, str]) -> None:
    path.write_text("".join(f'{{"_id": "{name}", "text": "{text}"}}\n' for name, text in texts.items()))


LISTS = {"expected.txt": lines, "expected.csv": table, "expected.jsonl": records}


@pytest.mark.parametrize(("name", "write"), LISTS.items(), ids=LISTS)
def test_rows_that_never_came_are_named(name: str, write: Any, index: Any, tmp_path: Path) -> None:
    some = dict(list(TEXTS.items())[:35])
    place = index({**some, "old-1": "a text that was deleted"})
    write(tmp_path / name, TEXTS)
    report = embaudit.vectors(place, expected=tmp_path / name)
    told = found(report)
    assert (report.exit_code, report.verdict) == (1, "not whole")
    assert report.line.startswith("The index is not whole: 5 of 40 that")
    assert told["absent_rows"][0] == "problem"
    assert "5 of 40 that" in told["absent_rows"][1]
    assert "by id)" in told["absent_rows"][1]
    assert "'doc-35', 'doc-36', 'doc-37' and 2 more" in told["absent_rows"][1]
    assert told["unexpected_rows"] == (
        "look",
        f"1 row is nothing that {tmp_path / name} expects: 'old-1'.",
    )
    assert "changed_texts" not in told


def test_a_whole_index_lacks_nothing(index: Any, tmp_path: Path) -> None:
    table(tmp_path / "expected.csv", TEXTS)
    report = embaudit.vectors(index(TEXTS), expected=tmp_path / "expected.csv", fewest_rows=40)
    assert found(report) == {
        "absent_rows": ("ok", f"All 40 that {tmp_path / 'expected.csv'} expects are in the index."),
        "fewest_rows": ("ok", "It has 40 rows, at least the 40 that are wanted."),
    }
    assert report.exit_code == 0


def test_texts_that_changed_since_are_named(index: Any, tmp_path: Path) -> None:
    place = index(TEXTS)
    records(tmp_path / "now.jsonl", {**TEXTS, "doc-7": "another text by now"})
    told = found(embaudit.vectors(place, expected=tmp_path / "now.jsonl"))
    assert told["changed_texts"] == ("problem", f"1 row has another text than {tmp_path / 'now.jsonl'}: 'doc-7'.")


def test_documents_of_a_folder_are_known_by_the_field_that_has_their_names(index: Any, tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    (folder / "deep").mkdir(parents=True)
    (folder / ".hidden").write_text("x")
    for name in TEXTS:
        (folder / f"{name}.md").write_text("x")
    (folder / "deep" / "never.md").write_text("x")
    told = found(embaudit.vectors(index(TEXTS, pieces=3), expected=folder))
    assert "1 of 41 that" in told["absent_rows"][1]
    assert "'deep/never.md'" in told["absent_rows"][1]
    assert "unexpected_rows" not in told


def test_too_few_rows_are_a_problem(index: Any) -> None:
    report = embaudit.vectors(index(TEXTS), fewest_rows=1_000)
    assert found(report)["fewest_rows"] == ("problem", "It has 40 rows, and should have at least 1,000.")
    assert report.exit_code == 1


ODD_LISTS = {
    "texts with lines of their own": ("odd.csv", 'id,text\na,"one\ntwo"\nb,"three\r\nfour"\n', []),
    "ends of lines that JSON leaves": ("odd.jsonl", '{"id": "a", "text": "one\\ntwo"}\n{"id": "b"}\n', []),
    "a separator of lines in a text": ("odd.jsonl", '{"id": "a"}\n{"id": "b", "note": "x\u2028y"}\n', []),
    "ids that are nothing": ("odd.csv", "id,text\na,\n,\nb,\n", []),
    "a list in JSON": ("odd.json", '["a", "b", "c"]', ["c"]),
    "a byte order mark and blank lines": ("odd.txt", "\ufeffa\n\nb\n", []),
    "twice": ("odd.txt", "a\na\nb\n", []),
}


@pytest.mark.parametrize(("name", "content", "absent"), ODD_LISTS.values(), ids=ODD_LISTS)
def test_odd_lists_are_read_as_they_are_meant(
    name: str, content: str, absent: list[str], index: Any, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content.encode())
    report = embaudit.vectors(index({"a": "one\ntwo", "b": "three\r\nfour"}), expected=tmp_path / name)
    told = found(report)
    assert told["absent_rows"][0] == ("problem" if absent else "ok"), told
    assert all(one in told["absent_rows"][1] for one in absent)
    assert "changed_texts" not in told


def test_numbers_that_became_floats_are_the_same_ids(tmp_path: Path) -> None:
    """As pandas writes whole numbers beside a missing one; and another field has some of them by chance."""
    rows: dict[str, Any] = {"id": [float(n) for n in range(20)], "tenant": [n % 5 for n in range(20)]}
    rows["vector"] = list(np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32))
    pq.write_table(pa.table(rows), tmp_path / "index.parquet")
    (tmp_path / "ids.txt").write_text("\n".join(map(str, range(20))))
    report = embaudit.vectors(tmp_path / "index.parquet", expected=tmp_path / "ids.txt")
    assert found(report)["absent_rows"][0] == "ok"


def test_rows_without_names_cannot_be_compared(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32))
    (tmp_path / "ids.txt").write_text("a\nb\n")
    report = embaudit.vectors(tmp_path / "v.npy", expected=tmp_path / "ids.txt")
    assert found(report)["absent_rows"][0] == "not measured"
    assert report.verdict == "sound"


def test_broken_lists_are_named(index: Any, tmp_path: Path) -> None:
    (tmp_path / "broken.jsonl").write_text('{"id": "a"}\n{"id": \n')
    with pytest.raises(CorpusError, match=r"broken\.jsonl cannot be read"):
        embaudit.vectors(index(TEXTS), expected=tmp_path / "broken.jsonl")


@pytest.mark.parametrize(("content", "said"), [("", "expects nothing"), ("title\nx\n", "Line 1 of .* has no id")])
def test_a_list_without_ids_is_refused(content: str, said: str, index: Any, tmp_path: Path) -> None:
    (tmp_path / "wrong.csv").write_text(content)
    with pytest.raises(UsageError, match=said):
        embaudit.vectors(index(TEXTS), expected=tmp_path / "wrong.csv")
