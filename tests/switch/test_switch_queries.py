"""A switch that changes queries, or texts of pairs, and no documents: the index stays, and it is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from role_clients import Client, fail
from tiny import tiny_bert

from embaudit.checkpoint import Checkpoint, LoadOptions, load_checkpoint
from embaudit.embedders.opened import CallOptions, Prompts, open_function
from embaudit.measures.quality.material import ScoredPairs
from embaudit.pages.html import render
from embaudit.questions.switch.encode import SearchTexts
from embaudit.questions.switch.switch import SwitchReport, switch_functions
from embaudit.words.errors import EmbauditError

TEXTS = [
    f"the {one} of the {two} is {three}"
    for one in ("price", "river", "moon")
    for two in ("town", "king", "bird", "year")
    for three in ("old", "red", "wet", "far", "cold")
]
PAIRS = ScoredPairs("made up", tuple(TEXTS[:40]), tuple(TEXTS[1:41]), tuple(float(place % 2) for place in range(40)))
WITH_QUERIES = SearchTexts.of("texts", TEXTS, [text[4:] for text in TEXTS])
WITHOUT = SearchTexts.of("texts", TEXTS)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    folder = tiny_bert(tmp_path_factory.mktemp("queries") / "tiny")
    return load_checkpoint(str(folder), LoadOptions(device="cpu"))


def switched(old: Any, new: Any, search: SearchTexts, *pairs: ScoredPairs) -> SwitchReport:
    both = [open_function(one, LoadOptions(device="cpu")) for one in (old, new)]
    report = switch_functions(both[0], both[1], pairs, [search])
    assert render(report.page())
    json.dumps(report.as_json(), allow_nan=False)
    return report


def to_queries(text: str) -> str:
    return f"red bird {text}"


@pytest.mark.parametrize("search", [WITH_QUERIES, WITHOUT], ids=["queries", "no queries"])
def test_queries_alone(tiny: Checkpoint, search: SearchTexts) -> None:
    report = switched(Client(tiny), Client(tiny, to_queries), search, PAIRS)
    assert report.verdict == "new threshold only"
    assert "documents have the same vectors, so that OLD's index stays; queries have others" in report.line
    assert ("of a query's first ten documents stay" in report.line) == (search is WITH_QUERIES)
    said = {one.name: one for one in report.findings}
    assert said["mixing"].sentence.startswith("Documents of both may be in one index: their vectors are the same.")
    assert "bridge" not in said
    assert "same" not in said, "two objects of one type are not one function"


def test_texts_of_pairs_alone(tiny: Checkpoint, tmp_path: Path) -> None:
    """A default prompt is put before texts, and before neither queries nor documents."""
    folder = tiny_bert(tmp_path / "prompted")
    settings = {"prompts": {"any": "red bird ", "query": "", "document": ""}, "default_prompt_name": "any"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    report = switched(str(tiny.resolved.folder), str(folder), WITH_QUERIES, PAIRS)
    assert report.verdict == "new threshold only"
    assert "OLD's index stays; texts of pairs have others" in report.line


def test_nothing(tiny: Checkpoint) -> None:
    for search in (WITH_QUERIES, WITHOUT):
        assert switched(Client(tiny), Client(tiny), search, PAIRS).verdict == "same index"


def test_documents_too(tiny: Checkpoint) -> None:
    report = switched(Client(tiny), Client(tiny, to_queries, documents=to_queries), WITH_QUERIES)
    assert report.same_text is not None
    assert report.same_text.moved == ()


@pytest.mark.parametrize(
    ("done", "said"),
    [({"texts": fail}, "gives no vector of the first 5 queries"), ({"rows": lambda row: row[:8]}, "queries, ")],
    ids=["refused", "fewer numbers"],
)
def test_queries_without_a_vector(tiny: Checkpoint, done: dict[str, Any], said: str) -> None:
    with pytest.raises(EmbauditError, match=said):
        switched(Client(tiny), Client(tiny, **done), WITH_QUERIES)


def test_one_object_with_two_prompts_is_not_the_same(
    tiny: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of_roles.py").write_text(
        "from embaudit.checkpoint import Encoder, load_checkpoint\n"
        f"CHECKPOINT = load_checkpoint({str(tiny.resolved.folder)!r})\n"
        "def embed(texts):\n    return Encoder(CHECKPOINT).encode_texts(texts)\n"
    )
    monkeypatch.chdir(tmp_path)
    name = "python:of_roles:embed"
    asked = [CallOptions(), CallOptions(prompts=Prompts(query="red bird "))]
    plain, prompted = (open_function(name, LoadOptions(device="cpu"), one) for one in asked)
    for other, is_said in ((prompted, False), (plain, True)):
        report = switch_functions(plain, other, [], [WITH_QUERIES])
        assert ("same" in {one.name for one in report.findings}) is is_said
