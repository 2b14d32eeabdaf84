"""Whole numbers: a form that is fitted to an index excuses nothing that is not the checkpoint's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import embaudit
from embaudit.questions.vectors.forms import form_of_index
from embaudit.words.errors import CorpusError, UsageError

ROWS, D = 300, 96
Way = Callable[[np.ndarray], np.ndarray]


def _vectors(seed: int, rows: int = ROWS) -> np.ndarray:
    """Unit vectors with a common part, of dimensions of uneven spread; two are hardly used."""
    generator = np.random.default_rng(seed)
    spread = generator.uniform(0.5, 2.0, D)
    spread[[3, 40]] = 0.0
    rows_of = generator.normal(size=(rows, D)) * spread + 0.5 * generator.normal(size=D) * spread
    return np.asarray(rows_of / np.linalg.norm(rows_of, axis=1, keepdims=True), dtype=np.float32)


OURS, OTHER = _vectors(0), _vectors(1)
LOW, HIGH = OURS[:150].min(axis=0), OURS[:150].max(axis=0)


def _by_range(vectors: np.ndarray, low: np.ndarray, high: np.ndarray, *, wraps: bool = False) -> np.ndarray:
    """As sentence-transformers' quantize_embeddings; what is beyond the range is cut, or comes out at the other end."""
    steps = np.trunc((vectors - low) / np.where(high > low, (high - low) / 255, 1) - 128).astype(np.int64)
    return steps.astype(np.int8) if wraps else steps.clip(-128, 127).astype(np.int8)


def _least_to_most(vectors: np.ndarray) -> np.ndarray:
    least = vectors.min(axis=1, keepdims=True)
    return (vectors - least) / (vectors.max(axis=1, keepdims=True) - least) * 255


def _by_largest(vectors: np.ndarray, most: int) -> np.ndarray:
    return np.round(vectors / np.abs(vectors).max(axis=1, keepdims=True) * most).astype(np.int8)


WAYS: dict[str, Way] = {
    "times 127": lambda vectors: np.round(vectors * 127).astype(np.int8),
    "times 127, cut to whole": lambda vectors: np.trunc(vectors * 127).astype(np.int8),
    "times 1000, down": lambda vectors: np.floor(vectors * 1000).astype(np.int16),
    "largest of all": lambda vectors: np.round(vectors / np.abs(vectors).max() * 127).astype(np.int8),
    "row's largest": lambda vectors: _by_largest(vectors, 127),
    "four bits": lambda vectors: _by_largest(vectors, 7),
    "row's least to most, uint8": lambda vectors: np.round(_least_to_most(vectors)).astype(np.uint8),
    "row's least to most, int8": lambda vectors: (np.floor(_least_to_most(vectors)) - 128).astype(np.int8),
    "times 127, and 128": lambda vectors: (np.round(vectors * 127) + 128).astype(np.uint8),
    "cut at two deviations, uint8": lambda vectors: np.round((vectors + 0.2).clip(0, 0.4) / 0.4 * 255).astype(np.uint8),
    "range of each dimension": lambda vectors: _by_range(vectors, vectors.min(axis=0), vectors.max(axis=0)),
    "range of other rows": lambda vectors: _by_range(vectors, LOW, HIGH),
    "range of other rows, around": lambda vectors: _by_range(vectors, LOW, HIGH, wraps=True),
    "three values": lambda vectors: np.round(vectors / vectors.std()).clip(-1, 1).astype(np.int8),
}


def _mixed(share: float) -> np.ndarray:
    mixed = OURS.copy()
    mixed[: int(share * ROWS)] = OTHER[: int(share * ROWS)]
    return mixed


def _related(apart: float) -> np.ndarray:
    """Another function's, at this 1 − cosine of every row."""
    noise = OTHER - (OTHER * OURS).sum(axis=1, keepdims=True) * OURS
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    return np.asarray((1 - apart) * OURS + np.sqrt(1 - (1 - apart) ** 2) * noise, dtype=np.float32)


def _foreign(stored: np.ndarray, ours: np.ndarray = OURS) -> np.ndarray:
    form = form_of_index(ours, stored)
    assert form is not None
    distances = form.distance(ours, stored)
    # Every row is compared: one that a form cannot read is no exception.
    assert np.isfinite(distances).all()
    assert form.confuses == 0
    differs = distances > form.tolerance(distances)
    # Nothing passes that is far from the checkpoint's.
    assert (distances[~differs] < 0.05).all()
    return np.asarray(differs)


@pytest.mark.parametrize("way", WAYS)
def test_rows_are_the_checkpoints_in_every_way_to_round(way: str) -> None:
    assert _foreign(WAYS[way](OURS)).mean() <= 0.01
    # As half precision leaves them.
    assert _foreign(WAYS[way](_related(3e-5))).mean() <= 0.02


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.8])
@pytest.mark.parametrize("way", WAYS)
def test_rows_of_another_function_are_counted_in_every_way_to_round(way: str, share: float) -> None:
    foreign = _foreign(WAYS[way](_mixed(share)))
    assert foreign[: int(share * ROWS)].all()
    assert foreign[int(share * ROWS) :].mean() <= 0.02


@pytest.mark.parametrize("way", WAYS)
def test_nothing_passes_for_the_checkpoints_because_a_fit_is_poor(way: str) -> None:
    generator = np.random.default_rng(2)
    stored = WAYS[way](OURS)
    anything = generator.integers(stored.min(), int(stored.max()) + 1, stored.shape).astype(stored.dtype)
    for foreign in (WAYS[way](OTHER), np.roll(stored, 1, axis=0), generator.permutation(stored), anything):
        assert _foreign(foreign).mean() >= 0.99, way
    assert _foreign(WAYS[way](_related(0.1))).mean() >= 0.95


@pytest.mark.parametrize("rows", [12, 40])
@pytest.mark.parametrize("way", WAYS)
def test_a_few_rows_are_enough(way: str, rows: int) -> None:
    some, others = OURS[:rows], OTHER[:rows]
    assert _foreign(WAYS[way](some), some).mean() <= 0.02
    assert _foreign(WAYS[way](others), some).all()


@pytest.mark.parametrize("way", WAYS)
def test_vectors_of_another_function_are_said_to_be_far(way: str) -> None:
    """Numbers that are all positive point one way, whatever they are of: that is no nearness."""
    form = form_of_index(OURS, WAYS[way](OTHER))
    assert form is not None
    assert np.median(form.distance(OURS, WAYS[way](OTHER))) > 0.6


def test_a_form_that_takes_any_row_for_another_is_said_to() -> None:
    """Of eight bits, most rows have those of another."""
    own = OURS[:, :8]
    form = form_of_index(own, (own > 0).astype(np.int8))
    assert form is not None
    assert form.confuses > 0


def test_coarse_codes_without_signs_and_rows_without_vectors_have_a_form() -> None:
    """They are of the function's dimension: nothing else may be said."""
    codes = np.digitize(OURS, np.quantile(OURS, [0.25, 0.5, 0.75])).astype(np.uint8)
    for ours, stored in ((OURS, codes), (np.full_like(OURS, np.nan), codes), (OURS[:3], codes[:3])):
        assert form_of_index(ours, stored) is not None
    assert _foreign(np.roll(codes, 1, axis=0)).all()


def test_no_form_passes_over_a_row_that_it_cannot_read() -> None:
    """Rows at the end of the range everywhere: a correlation, or a range, has nothing to say of them."""
    stored = WAYS["range of other rows"](OURS)
    stored[:200] = 127
    form = form_of_index(OURS, stored)
    assert form is not None
    distances = form.distance(OURS, stored)
    assert np.isfinite(distances).all()
    assert (distances > form.tolerance(distances))[:200].all()


@pytest.mark.parametrize("foreign", [0, 30, 300])
def test_an_index_of_unsigned_bytes_is_told(foreign: int, tiny_index: Any, tmp_path: Path) -> None:
    mixed = tiny_index.vectors.copy()
    mixed[:foreign] = tiny_index.others[:foreign]
    stored = np.round(_least_to_most(mixed)).astype(np.uint8)
    pq.write_table(pa.table({"text": tiny_index.texts, "v": list(stored)}), tmp_path / "i.parquet")
    report = embaudit.vectors(tmp_path / "i.parquet", tiny_index.folder, device="cpu", rows=600, with_explanation=False)
    assert report.verdict == ("not wholly its own" if foreign else "wholly its own")
    assert report.against is not None
    assert int(report.against.is_foreign.sum()) == foreign


# ---- what should be in an index: rows that never came, rows that nobody expects, texts that changed since ----


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
