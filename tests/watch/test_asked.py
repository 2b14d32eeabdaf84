"""Questions on a watch list: what a list may say, what is refused and how, and how often they are asked."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from embaudit.questions.answered import parameters_of
from embaudit.questions.names import ASKS, model_of
from embaudit.questions.vectors.question import VectorsQuestion
from embaudit.warehouse.publish import run_write
from embaudit.watch.asked import AskedEntry
from embaudit.watch.watch_list import read_watch_list
from embaudit.words.errors import UsageError
from embaudit_flows.ask import answers_of_entry

WRONG = {
    "a key": (
        '[[why]]\nstore = "a"\nfunction = "b"\nkk = 3\n',
        r"Entry 1 of \[\[why\]\].*unknown key kk; did you mean k",
    ),
    "a bound": ('[[search]]\nstore = "a"\n[[search]]\nstore = "a"\nrecall = 2\n', r"Entry 2 of \[\[search\]\].*recall"),
    "how often": ('[[search]]\nstore = "a"\nevery = "day"\n', "every: input should be 'night' or 'week', not 'day'"),
    "nothing to ask of": ("[[vectors]]\nrows = 5\n", r"Entry 1 of \[\[vectors\]\].*store is missing"),
    "another machine": ('[[search]]\nstore = "a"\nfunction = "https://far.example/v1"\n', "send_texts = true"),
    "no such question": ('[[searhc]]\nstore = "a"\n', "unknown key searhc; did you mean search"),
    "no list": ('[search]\nstore = "a"\n', r"search: an entry is written \[\[search\]\]"),
}


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "watch.toml").write_text(text)
    with pytest.raises(UsageError, match=said) as error:
        read_watch_list(tmp_path / "watch.toml")
    assert str(tmp_path / "watch.toml") in error.value.happened


def test_files_stand_beside_the_list_and_the_lists_device_is_taken(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "watch.toml").write_text(
        '[settings]\ndevice = "cpu"\n'
        '[[why]]\nstore = "rows.faiss"\nfunction = "model"\ngolden = "golden.csv"\ntexts = "texts.csv"\n'
        'stages = "python:app:search"\n'
        '[[vectors]]\nstore = "postgresql://host/db"\nfunction = "python:app:embed"\nalso = ["model", "packaged:x"]\n'
        'device = "cuda"\nevery = "week"\n'
    )
    entries = read_watch_list(tmp_path / "watch.toml").questions
    (vectors,), (why,) = (entry.questions for entry in entries)
    named = {name: getattr(why, name) for name in ("store", "function", "golden", "texts", "device", "stages")}
    assert named == {
        "stages": "python:app:search",
        **{"store": str(tmp_path / "rows.faiss"), "function": str(tmp_path / "model")},
        **{"golden": str(tmp_path / "golden.csv"), "texts": str(tmp_path / "texts.csv"), "device": "cpu"},
    }
    assert isinstance(vectors, VectorsQuestion)
    assert (vectors.store, vectors.function) == ("postgresql://host/db", "python:app:embed")
    assert list(vectors.also) == [str(tmp_path / "model"), "packaged:x"]
    assert (vectors.device, *(entry.every for entry in entries)) == ("cuda", "week", "night")


def test_an_index_and_an_endpoint_are_short_for_questions(home: Path, tmp_path: Path) -> None:
    (tmp_path / "best").mkdir()
    (tmp_path / "watch.toml").write_text(
        '[[endpoint]]\naddress = "http://localhost:8080"\ncheckpoint = "best"\n'
        '[[endpoint]]\naddress = "https://search.example"\napi = "tei"\nsend_texts = true\n'
        '[[index]]\nstore = "index.parquet"\nfunction = "best"\ngolden = "golden.csv"\nk = 3\nrows = 50\n'
        '[[index]]\nstore = "postgresql://me@host/db"\nfunction = "http://localhost:80"\nfrom = "docs"\nlost = 0.02\n'
        'golden = "golden.csv"\n'
    )
    served, hosted, local, remote = read_watch_list(tmp_path / "watch.toml").questions
    (parity,), (verify,), (vectors, why), (_, docs, asked) = (one.questions for one in (served, hosted, local, remote))
    assert (parity.asks, parameters_of(parity)) == (
        "parity",
        {"checkpoint": str(tmp_path / "best"), "other": "http://localhost:8080"},
    )
    assert (verify.asks, parameters_of(verify)["api"], hosted.makes_passport) == ("verify", "tei", True)
    assert Path(parameters_of(verify)["passport"]).parent == home / "reports" / "endpoints"
    store = {"store": str(tmp_path / "index.parquet"), "function": str(tmp_path / "best")}
    assert parameters_of(vectors) == {**store, "rows": 50, "since_last": True}
    assert parameters_of(why) == {**store, "golden": str(tmp_path / "golden.csv"), "k": 3}
    assert [one.asks for one in remote.questions] == ["verify", "vectors", "why"]
    assert not remote.makes_passport
    assert parameters_of(docs)["from_table"] == parameters_of(asked)["from_table"] == "docs"
    assert (parameters_of(docs)["lost"], parameters_of(docs)["store"]) == (0.02, "postgresql://host/db")


def test_every_question_can_stand_on_a_list(tmp_path: Path) -> None:
    given = {
        "store": "a.npy",
        "function": "f",
        "checkpoint": "f",
        "other": "g",
        "old": "f",
        "new": "g",
        "passport": "p",
        "mteb": ["m.json"],
    }
    for name in ASKS:
        question = model_of(name)
        fields = question.model_fields
        keys = "".join(
            f"{key} = {json.dumps(value)}\n"
            for key, value in given.items()
            if key in question.arguments() or (key in fields and fields[key].is_required())
        )
        (tmp_path / "watch.toml").write_text(f"[[{name}]]\n{keys}")
        (entry,) = read_watch_list(tmp_path / "watch.toml").questions
        assert [type(one) for one in entry.questions] == [question]


@pytest.mark.parametrize(("days", "is_new"), [(0, True), (3, False), (6, False), (7, True)])
def test_what_is_asked_every_week_stands_until_then(days: int, is_new: bool, home: Path, tmp_path: Path) -> None:
    """The answer of an earlier night stands as it was; 0: it was never asked."""
    np.save(tmp_path / "v.npy", np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32))
    warehouse = str(home / "warehouse.duckdb")
    entry = AskedEntry(questions=(VectorsQuestion(store=str(tmp_path / "v.npy")),), every="week")
    if days:
        assert [one.verdict for one in answers_of_entry(entry, warehouse)] == ["sound"]
        asked = datetime.now(UTC) - timedelta(days=days)
        run_write(
            home / "warehouse.duckdb",
            5.0,
            lambda connection: connection.execute("UPDATE answer SET asked = ?", [asked]),
        )
    (answer,) = answers_of_entry(entry, warehouse)
    assert (answer.verdict, answer.is_new) == ("sound", is_new)
    assert answer.before == ("sound" if days else None)
