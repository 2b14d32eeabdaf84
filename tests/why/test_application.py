"""What an application is asked, and what is said of one that fails: functions, pipelines, retrievers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from searched_stages import DENSE, Searched

from embaudit.embedders.object.interfaces import ObjectError
from embaudit.questions.answered import answer_key, parameters_of
from embaudit.questions.why.application import StageError, StageRow, open_application
from embaudit.questions.why.question import WhyQuestion
from embaudit.words.errors import UsageError


def fails(query: str) -> Any:
    raise ValueError("no such index")


def fails_inside(query: str) -> Any:
    return {"dense": DENSE, "words": (fails(one) for one in DENSE)}


WRONG: dict[str, tuple[Callable[[str], Any], str]] = {
    "raises": (fails, r"fails, asked .* fails: ValueError: no such index \(test_application.py, line \d+\)"),
    "raises in a stage": (fails_inside, r"fails in the stage words: ValueError: no such index"),
    "a list": (lambda query: DENSE, "gives no mapping, but an object of the type list"),
    "None": (lambda query: None, "gives no mapping, but None"),
    "no stage": (lambda query: {}, "gives no stage at all"),
    "a stage that is no list": (lambda query: {"dense": "row-3"}, "gives no list for the stage dense, but .* str"),
    "something without an id": (
        lambda query: {"dense": [3.5]},
        "gives for the stage dense an object of the type float",
    ),
    "ids of another store": (
        lambda query: {"dense": DENSE, "shown": [3, 4]},
        "2 of 2 ids that the stage shown gives are not in the store: '3', '4'. 3 is a number, and .* such as 'row-0'",
    ),
    "one id with a typo": (
        lambda query: {"shown": ["Row-3"]},
        "The only id that the stage shown gives is not in the store: 'Row-3'. Ids that look like 'Row-3': row-3",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_application_that_fails_is_told_which_stage_and_why(searched: Searched, name: str) -> None:
    application, said = WRONG[name]
    with pytest.raises(StageError, match=said) as raised:
        searched.why(application)
    assert raised.value.next_step


def test_numbers_are_the_ids_of_a_store_that_writes_them_as_texts() -> None:
    row = open_application(lambda query: {"shown": [7, ("8", 0.5)]}).stages("q")["shown"]
    assert row == (StageRow("7", is_number=True), StageRow("8", 0.5))


def test_names_of_objects_are_imported_and_what_is_none_is_refused(
    searched: Searched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop_stages.py").write_text(
        "class Search:\n    def __call__(self, query):\n        print('asked')\n        return {'shown': ['row-3']}\n"
    )
    monkeypatch.chdir(tmp_path)
    report = searched.why("python:shop_stages:Search")
    assert (report.verdict, report.as_json()["stages"]) == (
        "found",
        {"object": "python:shop_stages:Search", "left": {"shown": {"has": 1, "of": 1}}},
    )
    with pytest.raises(UsageError, match="names no Python object"):
        open_application("shop_stages:Search")
    with pytest.raises(UsageError, match="has no search"):
        open_application("python:shop_stages:search")
    for one in (7, {"shown": DENSE}, DENSE):
        with pytest.raises(UsageError, match=f"{type(one).__name__}, which cannot be asked"):
            open_application(one)
    (tmp_path / "broken_stages.py").write_text("1 / 0\n")
    with pytest.raises(ObjectError, match="ZeroDivisionError"):
        open_application("python:broken_stages:search")


def test_a_question_with_stages_is_live(searched: Searched) -> None:
    asked = {"store": str(searched.file), "function": searched.model, "query": "q", "expect": "row-1"}
    assert answer_key(WhyQuestion.of(**asked)) is not None
    for stages in ("python:a:b", lambda query: {}):
        question = WhyQuestion.of(**asked, stages=stages)
        assert question.is_live
        assert answer_key(question) is None
        assert parameters_of(question)["stages"] in ("python:a:b", "lambda")
    with pytest.raises(UsageError, match="--unexpected asks why one came up"):
        WhyQuestion.of(store="s", function="f", query="q", unexpected="row-1", stages="python:a:b").cases  # noqa: B018


class Pipeline:
    """What Haystack's pipeline promises: its graph, its open inputs, and outputs of the components that are named."""

    def __init__(self, outputs: dict[str, Any], *edges: tuple[str, str]) -> None:
        self.outputs = outputs
        self.graph = SimpleNamespace(nodes=list(outputs), edges=[(*edge, "documents") for edge in edges])
        self.asked: list[dict[str, Any]] = []

    def inputs(self) -> dict[str, dict[str, Any]]:
        mandatory = {"type": str, "is_mandatory": True}
        taken = {"top_k": {"type": int, "is_mandatory": False}}
        own = {"words": {"query": mandatory, **taken}, "embedder": {"text": mandatory}, "prompt": {"name": mandatory}}
        return {"joiner": taken, **own}

    def run(self, data: dict[str, Any], include_outputs_from: set[str] | None = None) -> dict[str, Any]:
        self.asked.append(data)
        return {name: self.outputs[name] for name in include_outputs_from or ()}


def documents(*rows: int, **named: str) -> dict[str, Any]:
    return {"documents": [SimpleNamespace(id=f"row-{row}", content=f"text {row}", score=0.5, **named) for row in rows]}


def test_a_haystack_pipeline_has_a_stage_for_each_component_that_gives_documents(searched: Searched) -> None:
    outputs = {
        "joiner": documents(1, 2),
        "embedder": {"embedding": [0.1]},
        "dense": documents(1, 3),
        "words": documents(1),
        "prompt": {"prompt": "…"},
    }
    edges = (("embedder", "dense"), ("dense", "joiner"), ("words", "joiner"), ("joiner", "prompt"))
    pipeline = Pipeline(outputs, *edges)
    report = searched.why(pipeline)
    query = searched.texts[3]
    assert pipeline.asked == [{"words": {"query": query}, "embedder": {"text": query}, "prompt": {"name": query}}]
    assert report.stages is not None
    trace = report.stages.traces[0]
    assert set(trace.stages) == {"dense", "words", "joiner"}
    assert list(trace.stages)[-1] == "joiner"
    # Of one query nobody would see that words is a branch: the graph says so.
    assert (trace.lost_at, trace.before, set(trace.searches)) == ("joiner", "dense", {"dense", "words"})


def test_a_langchain_retriever_has_one_stage_and_a_chain_those_that_it_names(searched: Searched) -> None:
    def found(*rows: int, has_ids: bool = True) -> list[Any]:
        return [SimpleNamespace(id=f"row-{row}" if has_ids else None, page_content=searched.texts[row]) for row in rows]

    report = searched.why(SimpleNamespace(invoke=lambda query: found(1, 3)))
    assert report.stages is not None
    assert report.stages.traces[0].ranks == {"shown": 2}
    # Without ids, the texts are the store's.
    report = searched.why(
        SimpleNamespace(invoke=lambda query: {"dense": found(1, 3, has_ids=False), "shown": found(1)})
    )
    assert report.stages is not None
    assert report.stages.traces[0].ranks == {"dense": 2, "shown": None}


def test_haystacks_own_pipeline_is_asked() -> None:
    haystack = pytest.importorskip("haystack")
    memory = pytest.importorskip("haystack.document_stores.in_memory").InMemoryDocumentStore()
    retriever = pytest.importorskip("haystack.components.retrievers.in_memory").InMemoryBM25Retriever
    memory.write_documents(
        [haystack.Document(id=f"row-{n}", content=one) for n, one in enumerate(("a gift", "a card"))]
    )
    pipeline = haystack.Pipeline()
    pipeline.add_component("words", retriever(memory, top_k=1))
    assert [row.id for row in open_application(pipeline).stages("which gift")["words"]] == ["row-0"]


def test_a_langchain_retriever_is_asked() -> None:
    stores = pytest.importorskip("langchain_core.vectorstores")
    fake = pytest.importorskip("langchain_core.embeddings").DeterministicFakeEmbedding(size=8)
    memory = stores.InMemoryVectorStore(fake)
    memory.add_texts(["a gift", "a card"], ids=["row-0", "row-1"])
    found = open_application(memory.as_retriever(search_kwargs={"k": 1})).stages("a gift")
    assert [(row.id, row.text) for row in found["shown"]] == [("row-0", "a gift")]
