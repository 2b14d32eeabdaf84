"""The command and the Python call: on the packaged checkpoint and on tiny ones, and what they say of bad input."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from commands import run_here
from judged_collections import write_collection
from tiny import tiny_bert
from tiny_models import change_tensors

import embaudit
from embaudit.checkpoint import Checkpoint
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.embedders.endpoint.client import EndpointError
from embaudit.measures.quality.material import Material, sample_material
from embaudit.questions.switch.encode import SearchTexts
from embaudit.questions.switch.question import SwitchQuestion
from embaudit.questions.switch.switch import SwitchReport, switch_functions
from embaudit.words.errors import CheckpointError, CorpusError, EmbauditError, MeasureError, UsageError

TEXTS = [
    f"the {one} of the {two} is {three}"
    for one in ("price", "river", "moon")
    for two in ("town", "king", "bird", "year")
    for three in ("old", "red", "wet", "far", "cold")
]
PAIRS = "sentence1,sentence2,score\n" + "".join(
    f"{TEXTS[place]},{TEXTS[place + 1 if place % 2 else 59 - place]},{5 * (place % 2)}\n" for place in range(59)
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two checkpoints, one that was changed, one with another dimension; texts, queries, pairs."""
    place = tmp_path_factory.mktemp("switch")
    old = tiny_bert(place / "old")
    shutil.copytree(old, place / "nan")
    tiny_bert(place / "other", seed=1)
    # Every fifth token gives NaN in the end, and nothing is NaN in the file.
    change_tensors(
        place / "nan" / "model.safetensors", lambda found: found["embeddings.word_embeddings.weight"][10::5].fill_(3e38)
    )
    (place / "texts.txt").write_text("\n".join(TEXTS))
    (place / "few.txt").write_text("\n".join(TEXTS[:9]))
    (place / "empty.txt").write_text("\n\n")
    (place / "queries.jsonl").write_text("".join(json.dumps({"query": text[4:]}) + "\n" for text in TEXTS[::5]))
    (place / "one.jsonl").write_text(json.dumps({"query": "a red bird"}) + "\n")
    (place / "pairs.csv").write_text(PAIRS)
    write_collection(place / "judged", TEXTS, [text[4:] for text in TEXTS[:20]])
    write_collection(place / "unjudged", TEXTS, [text[4:] for text in TEXTS[:20]])
    (place / "unjudged" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n")
    return place


@pytest.fixture
def called(folder: Path, one_thread: int) -> Callable[..., SwitchReport]:
    def call(new: str = "other", **given: object) -> SwitchReport:
        files = {name: folder / str(value) for name, value in given.items() if name in ("corpus", "queries")}
        rest = {name: value for name, value in given.items() if name not in files}
        return embaudit.switch(folder / "old", folder / new, pairs=[folder / "pairs.csv"], **files, **rest)  # type: ignore[arg-type]

    return call


@pytest.mark.slow
def test_the_packaged_checkpoint_with_another_pooling(minilm: Checkpoint) -> None:
    """Vectors of the two must not be mixed, and the same text is nearer to itself than to others."""
    cls = replace(minilm, recipe=replace(minilm.recipe, pooling=("cls",)))
    sample = sample_material()
    part = sample.collections[0].first(12, 40)[0]
    report = switch_functions(
        CheckpointFunction(minilm),
        CheckpointFunction(cls),
        [sample.pairs[0].first(60)],
        [SearchTexts(part)],
        rows=1_000,
    )
    assert report.same_text is not None
    assert 0.4 < (report.same_text.median.value or 0) < 0.7
    assert report.same_text.strangers < 0.15
    assert report.verdict != "same index"
    scale = report.cut_offs[0]
    assert scale.old < (scale.new.value or 0)
    assert scale.has_moved
    assert report.cost is not None
    assert report.cost.stored == (1_000 * 384 * 4,) * 2
    assert report.cost.encoded == len(part.documents)
    assert [one.metric for one in report.quality] == ["Spearman's ρ", "nDCG@10"]
    assert all(one.change.low is not None for one in report.quality)


def test_the_command_says_what_the_call_says(folder: Path, one_thread: int) -> None:
    arguments = (str(folder / "old"), str(folder / "other"), "--pairs", str(folder / "pairs.csv"))
    given = ("--data", str(folder / "judged"), "--threshold", "0.3", "--rows", "5000")
    page = folder / "page.html"
    done = run_here(("switch", *arguments, *given, "--json", "--out", str(page)), os.environ, folder)
    assert done.stderr.startswith("Comparing the texts with OLD")
    found = json.loads(done.stdout)
    assert done.returncode == {"same index": 0, "could not be told": 2}.get(found["verdict"], 1)
    assert [one["old"] for one in found["cut_offs"]] == [0.3, 0.3]
    assert found["cost"]["rows"] == 5_000
    html = page.read_text(encoding="utf-8")
    assert found["line"].split(";")[0][:40] in html
    assert html.count("<svg") == 3
    report = embaudit.switch(
        folder / "old",
        folder / "other",
        pairs=[folder / "pairs.csv"],
        data=[folder / "judged"],
        thresholds=[0.3],
        rows=5_000,
    )
    timed = {"seconds", "cost", "findings"}
    ours, theirs = (
        {k: v for k, v in one.items() if k not in timed} for one in (json.loads(json.dumps(report.as_json())), found)
    )
    assert ours == theirs


def test_the_same_checkpoint_twice_is_the_same_index_and_said(folder: Path, one_thread: int) -> None:
    arguments = ("switch", "old", "old", "--corpus", "texts.txt", "--pairs", "pairs.csv", "--markdown")
    done = run_here(arguments, os.environ, folder)
    assert done.returncode == 0
    assert "Same index" in done.stdout
    assert "OLD and NEW are the same checkpoint" in done.stdout


def test_texts_without_queries_ask_for_their_neighbours(called: Callable[..., SwitchReport]) -> None:
    report = called(corpus="texts.txt")
    (search,) = report.searches
    assert search.queries == len(TEXTS)
    assert not search.is_judged
    assert [one.name.split()[0] for one in report.cut_offs] == ["the", "texts"]
    assert {one.metric for one in report.quality} == {"Spearman's ρ"}


def test_queries_without_judgements_still_tell_overlap(called: Callable[..., SwitchReport]) -> None:
    report = called(corpus="texts.txt", queries="queries.jsonl")
    (search,) = report.searches
    assert search.queries == 12
    assert search.overlap.low is not None
    (said,) = [one for one in report.findings if one.name == "overlap"]
    assert (said.value, said.low, said.high) == (search.overlap.value, search.overlap.low, search.overlap.high)
    assert search.ways["NEW alone"].ndcg is None
    assert [one.metric for one in report.quality] == ["Spearman's ρ"]


def test_one_query_tells_nothing_and_says_so(called: Callable[..., SwitchReport]) -> None:
    report = called(corpus="texts.txt", queries="one.jsonl")
    assert report.verdict == "could not be told"
    assert "too few queries for an interval (1)" in report.line
    assert called("old", corpus="texts.txt", queries="one.jsonl").verdict == "same index"


BAD: dict[str, tuple[type[EmbauditError], dict[str, object], str]] = {
    "OLD": (CheckpointError, {"old": "missing"}, "OLD: "),
    "NEW": (CheckpointError, {"new": "missing"}, "NEW: "),
    "NaN": (MeasureError, {"new": "nan"}, "NEW has no vector of 60 of 60 texts"),
    "no judgements": (CorpusError, {"data": ["unjudged"]}, "no relevant document for any query"),
    "empty": (CorpusError, {"corpus": "empty.txt"}, "Corpus texts is empty"),
    "few": (CorpusError, {"corpus": "few.txt"}, "few.txt has 9 different texts"),
    "few read": (
        UsageError,
        {"corpus": "texts.txt", "texts": 5},
        "texts: input should be greater than or equal to 20, not 5",
    ),
    "queries alone": (UsageError, {"queries": "queries.jsonl"}, "no texts to find"),
    "no file": (CorpusError, {"corpus": "none.txt"}, "There is no file or folder"),
    "endpoint": (EndpointError, {"new": "http://localhost:1"}, "Nothing answers at http://localhost:1"),
    "share": (UsageError, {"holds": 1.5}, "holds: input should be less than or equal to 1, not 1.5"),
    "threshold": (UsageError, {"thresholds": [float("nan")]}, "a threshold of nan"),
    "rows": (UsageError, {"rows": 0}, "rows: input should be greater than or equal to 1, not 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(folder: Path, one_thread: int, case: str) -> None:
    kind, given, said = BAD[case]
    options = {"old": "old", "new": "other", "pairs": ["pairs.csv"]} | given

    def below(value: object) -> object:
        if isinstance(value, list):
            return [below(one) for one in value]
        is_place = isinstance(value, str) and "://" not in value
        return folder / str(value) if is_place else value

    with pytest.raises(kind) as raised:
        embaudit.switch(**{name: below(value) for name, value in options.items()})  # type: ignore[arg-type]
    assert said in raised.value.happened
    assert raised.value.next_step or case in ("share", "rows", "few read", "threshold")


# What is given; of each search its texts, queries and judged queries, and whether its texts ask for each other; and the
# data sets of pairs. Of the embedded sample it is what the sample has.
GIVEN: dict[str, tuple[dict[str, object], list[tuple[int, int, int, bool]], list[str]]] = {
    "nothing": ({}, [(270, 90, 90, False)], ["sample"]),
    "pairs": ({"pairs": ["pairs.csv"]}, [(270, 90, 90, False)], ["pairs.csv"]),
    "judged queries": ({"data": ["judged"]}, [(60, 20, 20, False)], ["sample"]),
    "texts": ({"corpus": "texts.txt"}, [(60, 60, 0, True)], ["sample"]),
    "fewer texts": ({"corpus": "texts.txt", "texts": 40}, [(40, 40, 0, True)], ["sample"]),
    "queries": ({"corpus": "texts.txt", "queries": "queries.jsonl"}, [(60, 12, 0, False)], ["sample"]),
    "golden queries": ({"corpus": "texts.txt", "golden": "golden.csv"}, [(60, 2, 2, False)], ["sample"]),
    "golden queries, fewer texts": (
        {"corpus": "texts.txt", "golden": "golden.csv", "texts": 20},
        [(20, 2, 2, False)],
        ["sample"],
    ),
    "both": (
        {"corpus": "texts.txt", "golden": "golden.csv", "queries": "queries.jsonl"},
        [(60, 12, 0, False), (60, 2, 2, False)],
        ["sample"],
    ),
    "all": (
        {"data": ["judged"], "corpus": "texts.txt", "pairs": ["pairs.csv"], "texts": 30},
        [(30, 20, 20, False), (30, 30, 0, True)],
        ["pairs.csv"],
    ),
}


@pytest.mark.parametrize("name", GIVEN)
def test_what_is_given_is_compared_and_of_what_is_not_the_sample(folder: Path, name: str) -> None:
    given, searches, pairs = GIVEN[name]
    (folder / "golden.csv").write_text(f"query,expect\nwhich price,{TEXTS[7]}\nwhich moon,{TEXTS[50]}\n")
    files = {"corpus", "golden", "queries", "data", "pairs"}
    named = {
        one: [str(folder / each) for each in value] if isinstance(value, list) else str(folder / str(value))
        for one, value in given.items()
        if one in files
    }
    asked = SwitchQuestion.model_validate({"old": "a", "new": "b", **given, **named})
    material = asked.switch_material()
    assert [
        (
            len(one.collection.documents),
            len(one.collection.queries),
            sum(map(bool, one.collection.relevant)),
            one.asks_itself,
        )
        for one in material.searches
    ] == searches
    assert [Path(one.name).name for one in material.pairs] == pairs
    assert all(len(one.firsts) <= asked.texts for one in material.pairs if one.name != "sample")
    for one in material.searches:
        if name.startswith("golden"):
            texts = one.collection.documents
            assert [texts[place] for found in one.collection.relevant for place in found] == [TEXTS[7], TEXTS[50]]
            assert [Path(each).name for each in one.collection.name.split(" in ")] == ["golden.csv", "texts.txt"]


def test_queries_without_judgements_are_told_how_to_be_given(folder: Path) -> None:
    with pytest.raises(CorpusError) as raised:
        embaudit.switch(folder / "old", folder / "other", data=[folder / "unjudged"])
    assert "--queries" in raised.value.next_step


def test_texts_are_encoded_once_with_the_prompt_of_their_use(folder: Path, one_thread: int) -> None:
    from embaudit.checkpoint import load_checkpoint

    place = folder / "prompted"
    shutil.copytree(folder / "old", place)
    (place / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "red ", "document": ""}}))
    old, new = (CheckpointFunction(load_checkpoint(str(one))) for one in (folder / "old", place))
    material = Material()
    report = switch_functions(old, new, material.pairs, [SearchTexts.of("texts", TEXTS, [text[:9] for text in TEXTS])])
    assert report.same_text is not None
    # Documents are the same, queries are not.
    assert report.same_text.worst > 1e-3
    assert report.same_text.quantiles[-1] == pytest.approx(1, abs=1e-6)
    assert not report.same_text.is_same
