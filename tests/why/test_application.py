"""What an application is asked, and what is said of one that fails: functions, pipelines, retrievers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from searched_stages import DENSE, Searched, ids
from told_in_full import assert_told

import embaudit
from embaudit.embedders.object.interfaces import ObjectError
from embaudit.pages.ci import checked_of
from embaudit.questions.answered import answer_key, parameters_of, rows_of
from embaudit.questions.report import AnswerFigureRow, WhyCaseRow
from embaudit.questions.why.application import StageError, StageRow, open_application
from embaudit.questions.why.question import WhyQuestion
from embaudit.questions.why.stage_trace import inferred, trace_of
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


# ---- stages ----


WORDS = ids(6, 2, 7, 8)
FUSED = ids(2, 1, 6, 3, 7, 4, 8, 5)
# An application that shows row-3: what a stage gives instead, where it is then lost, how, and after which.
WHOLE = {
    "dense": DENSE,
    "words": WORDS,
    "fused": FUSED,
    "filtered": FUSED[:6],
    "reranked": FUSED[5::-1],
    "shown": ids(4, 7, 3),
}
PLANTED: dict[str, tuple[dict[str, list[str]], str, str, str]] = {
    "nothing": ({}, "", "", ""),
    "dense, and words have it": ({"dense": ids(1, 2, 4, 5), "words": [*WORDS, "row-3"]}, "", "", ""),
    "both branches": (
        {"dense": ids(1, 2, 4), "fused": ids(2, 1, 6), "filtered": ids(2, 1), "reranked": ids(1, 2), "shown": ids(1)},
        "dense",
        "never",
        "",
    ),
    "a fusion": (
        {"fused": ids(2, 1, 6, 7), "filtered": ids(2, 1), "reranked": ids(1, 2), "shown": ids(1)},
        "fused",
        "overtaken",
        "dense",
    ),
    "a filter": (
        {"filtered": ids(2, 1, 6, 7, 4), "reranked": ids(4, 2), "shown": ids(4)},
        "filtered",
        "left out",
        "fused",
    ),
    "a reranker": ({"reranked": ids(4, 7, 2), "shown": ids(4)}, "reranked", "overtaken", "filtered"),
    "a cut": ({"shown": ids(4, 7)}, "shown", "cut", "reranked"),
    "a broken stage": ({"reranked": [], "shown": []}, "reranked", "empty", "filtered"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_loss_is_told_at_its_stage(searched: Searched, name: str) -> None:
    changed, stage, how, before = PLANTED[name]
    report = searched.why(lambda query: WHOLE | changed)
    assert report.stages is not None
    (trace,) = report.stages.traces.values()
    assert (trace.lost_at, trace.how, trace.before) == (stage, how, before)
    # The search itself finds the row: what is lost is the application's.
    assert report.counts == {"found": 1}
    assert (report.verdict, report.exit_code) == (("lost", 1) if stage else ("found", 0))
    (finding,) = [one for one in report.findings if one.name == "stages"]
    assert finding.level == ("problem" if stage else "ok")
    assert stage in finding.sentence
    (row,) = report.rows()[WhyCaseRow]
    assert row["stage"] == (stage or None)
    # Of JUnit's cases, the query's own.
    assert list(checked_of(report))[-1].level == ("problem" if stage else "ok")


def test_what_stands_instead_has_its_rank_before_and_after(searched: Searched) -> None:
    report = searched.why(lambda query: {"dense": DENSE, "reranked": [("row-5", 0.9), ("row-1", 0.5), ("row-9", 0.4)]})
    (case,) = report.as_json()["cases"]
    assert case["stages"]["ranks"] == {"dense": 3, "reranked": None}
    assert case["stages"]["instead"] == [
        {"id": "row-5", "rank": 1, "rank_before": 5, "score": 0.9},
        {"id": "row-1", "rank": 2, "rank_before": 1, "score": 0.5},
        {"id": "row-9", "rank": 3, "rank_before": None, "score": 0.4},
    ]
    sentence = case["stages"]["sentence"]
    assert sentence == (
        "The application loses it at the stage reranked: dense has it 3rd, and reranked has 3 rows, 2 from behind it "
        "or new."
    )
    sections = {section.title: section for section in report.page().sections}
    assert [row[:2] for row in sections["In its place"].parts[0].rows] == [(1, "row-5"), (2, "row-1"), (3, "row-9")]  # type: ignore[union-attr]


def test_golden_queries_are_counted_after_each_stage_and_kept(searched: Searched) -> None:
    asked: list[str] = []

    def application(query: str) -> dict[str, list[str]]:
        asked.append(query)
        row = searched.texts.index(query)
        near = ids(*range(row, row + 6))[::-1]
        return {
            "dense": near,
            "filtered": near if row < 13 else near[:-1],
            "shown": near[-3:] if row < 11 else near[:3],
        }

    report = searched.why(application, 10, 11, 12, 13)
    assert asked == [searched.texts[row] for row in (10, 11, 12, 13)]
    assert report.stages is not None
    assert [(name, *report.stages.left(name)) for name in report.stages.names] == [
        ("dense", 4, 4),
        ("filtered", 3, 4),
        ("shown", 1, 4),
    ]
    assert report.line.startswith("4 of 4 are found")
    assert "the application loses 3 of these" in report.line
    (finding,) = [one for one in report.findings if one.name == "stages"]
    assert finding.sentence == "The application loses 3 of 4 rows (75% [19%, 99%]): 1 at filtered, 2 at shown."
    table = next(one for one in report.page().sections if one.title == "The application's stages").parts[0]
    assert [(row[0], row[1], row[4], row[5]) for row in table.rows] == [  # type: ignore[union-attr]
        ("dense", 4, 0, 6),
        ("filtered", 3, 1, 6),
        ("shown", 1, 2, 3),
    ]
    question = WhyQuestion.of(store=searched.file, function=searched.model, query={"q": "row-1"}, stages=application)
    rows = rows_of(question, report, None, datetime.now(UTC))
    assert [row["stage"] for row in rows[WhyCaseRow]] == [None, "shown", "shown", "filtered"]
    figures = {row["item"]: row["value"] for row in rows[AnswerFigureRow] if row["figure"] == "found"}
    assert figures == {"": 1.0, "dense": 1.0, "filtered": 0.75, "shown": 0.25}


def test_rows_that_are_not_there_are_no_losses_of_the_application(searched: Searched) -> None:
    report = embaudit.why(
        searched.file,
        searched.model,
        "a query",
        "row-none",
        text="text",
        id="id",
        stages=lambda query: {"shown": DENSE},
    )
    assert_told(report)
    assert report.counts == {"absent": 1}
    assert report.stages is not None
    assert not report.stages.traces


def test_some_strange_ids_and_an_empty_stage_are_findings(searched: Searched) -> None:
    report = searched.why(lambda query: {"dense": DENSE, "words": [], "shown": [*DENSE, 99]})
    said = {one.name: (one.level, one.sentence) for one in report.findings}
    assert said["empty_stage"] == ("look", "The stage words gives nothing for this query.")
    assert said["stage_ids"][1].startswith("1 of 6 ids that the stage shown gives are not in the store: '99'.")
    assert report.exit_code == 0


def rows(**stages: str) -> dict[str, list[StageRow]]:
    return {name: [StageRow(one) for one in given] for name, given in stages.items()}


@pytest.mark.parametrize(
    ("stages", "lost_at"),
    [
        (rows(dense="xab", words="bcd", fused="abc"), "fused"),
        (rows(words="bcd", dense="xab", fused="abc"), "fused"),
        (rows(dense="xabc", filtered="abc", shown="ab"), "filtered"),
        # A filter of one branch, beside another one.
        (rows(dense="xabc", filtered="ab", words="cde", fused="abcde"), "filtered"),
        # Neighbours that are put in beside what was found.
        (rows(dense="xabc", widened="abcyz", shown="ay"), "widened"),
        (rows(dense="xab", words="cde"), "words"),
        (rows(dense="ab", words="cx", fused="acx"), ""),
    ],
)
def test_what_a_stage_takes_from_is_seen_from_its_rows(stages: Mapping[str, Sequence[StageRow]], lost_at: str) -> None:
    assert trace_of(stages, frozenset("x"), inferred([stages])).lost_at == lost_at
