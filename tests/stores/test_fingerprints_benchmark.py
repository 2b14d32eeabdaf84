"""``python -m benchmarks fingerprints`` asks about an owner's stores without them, and writes what is common."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.fingerprints import FieldStore, fingerprints_of, held_out, main, with_joined_owners
from embaudit.questions.vectors.builder import read_fingerprints

D = 64
MEANS = np.random.default_rng(0).normal(size=(2, D))


def rows_of(model: int, seed: int, rows: int = 14) -> np.ndarray:
    vectors = 2 * MEANS[model] + np.random.default_rng(seed).normal(size=(rows, D))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def written(folder: Path, name: str, vectors: np.ndarray) -> None:
    (folder / name).mkdir(parents=True)
    lines = [json.dumps({"text": f"secret {row}", "vector": one.tolist()}) for row, one in enumerate(vectors)]
    (folder / name / "rows.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_stores_are_named_without_their_owners_and_only_what_they_have_in_common_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = {}
    for n in range(6):
        written(tmp_path / "stores", f"a{n}", rows_of(0, n))
        models[f"a{n}"] = {"owner": f"someone {n}", "model": "model a"}
    for n in range(2):
        written(tmp_path / "stores", f"b{n}", rows_of(1, 50 + n))
        models[f"b{n}"] = {"owner": f"other {n}", "model": "model b"}
    written(tmp_path / "stores", "c", rows_of(0, 99))
    models["c"] = {"owner": "who knows", "model": None}
    (tmp_path / "models.json").write_text(json.dumps(models), encoding="utf-8")
    main([str(tmp_path / "stores"), "--models", str(tmp_path / "models.json"), "--write", str(tmp_path / "known.json")])
    said = capsys.readouterr().out
    assert "model a: 6 owners, 6 stores, 84 rows; by direction" in said
    assert "| model a | 6 | 6 | 6 of 6 [61%, 100%] | 0 | 0 | 0 |" in said
    assert "| a model without a fingerprint | 2 | 2 | – | 0 of 2 [0%, 66%] | 2 | 0 |" in said
    assert "| none, or several | 1 | 1 | model a 1 | – | 0 | 0 |" in said
    assert "| another length | 6 | 6 | 0 | 0 | 0 | 0 |" in said
    assert "| dimensions in another order | 6 | 0 | 0 | 0 | 6 | 0 |" in said
    assert "random vectors, 64 numbers: nobody known: 100" in said
    text = (tmp_path / "known.json").read_text("utf-8")
    for kept in ("secret", "someone", "who knows"):
        assert kept not in said + text
    [known] = read_fingerprints(tmp_path / "known.json")
    assert (known.model, known.owners, known.stores) == ("model a", 6, 6)
    assert known.held_out is not None
    assert vars(known.held_out) == {"named": 6, "own": 6, "wrongly": 0, "others": 2}
    assert known.direction @ MEANS[0] / np.linalg.norm(MEANS[0]) > 0.95


def test_owners_who_share_a_row_count_as_one_and_four_make_no_fingerprint() -> None:
    stores = [FieldStore(str(n), f"owner {n}", "model a", rows_of(0, n)) for n in range(5)]
    copied = FieldStore("5", "owner 5", "model a", np.concatenate([rows_of(0, 77), stores[0].units[:1]]))
    joined = with_joined_owners([*stores, copied])
    assert len({one.owner for one in joined}) == 5
    assert joined[5].owner == joined[0].owner
    assert [one.owners for one in fingerprints_of(joined, 5)] == [5]
    assert fingerprints_of(joined[:4], 5) == []


def test_a_held_out_owner_s_stores_are_in_no_fingerprint() -> None:
    """A model that five owners have used cannot be named by the stores of one of them and three others."""
    stores = [FieldStore(str(n), f"owner {n % 4}", "model a", rows_of(0, n)) for n in range(8)]
    assert {answer.told for answer in held_out(stores) if not answer.change} == {"no fingerprint"}


def test_what_is_shipped_is_asked_as_it_is_and_previews_set_no_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("benchmarks.fingerprints.PREVIEWS", {"model a, preview": "model a"})
    stores = [FieldStore(f"a{n}", f"owner {n}", "model a", rows_of(0, n)) for n in range(6)]
    stores += [FieldStore(f"b{n}", f"other {n}", "model b", rows_of(1, n)) for n in range(6)]
    preview = FieldStore("p", "someone else", "model a, preview", rows_of(0, 50))
    made = fingerprints_of([*stores, preview], 5)
    assert [(one.model, one.measure) for one in made] == [("model a", "direction"), ("model b", "direction")]
    shipped = replace(made[0], limit=2.0)
    answers = [one for one in held_out(stores, [shipped]) if not one.change]
    assert {(one.store.model, one.named) for one in answers} == {("model a", ""), ("model b", "model b")}
