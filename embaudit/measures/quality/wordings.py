"""Finding: does a search hang on how the instruction before a query is worded?

Ten wordings of one request: none, those of families of checkpoints, and paraphrases of two of these. Queries are
encoded again with each, documents are not: they keep their own prompt.

    change_w = nDCG@10(w) − nDCG@10(declared), paired over queries
    spread   = max_w nDCG@10(w) − min_w nDCG@10(w), the declared wording among them
                                                    Kostiuk and Enevoldsen 2026, arXiv 2605.22544

A score of one wording is one draw of that spread. A checkpoint that was trained without a prompt is measured with
prompts that are foreign to it, as users copy them from other cards; one that was trained with several should not mind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.prompts import PromptTokens, prompt_tokens
from embaudit.declared.document import Column, Table
from embaudit.declared.rule import Finding, Level, Rule, number
from embaudit.measures.quality.counterfactual import WIN, holm
from embaudit.measures.quality.measured import MeasuredCollection, as_json, word_cosines
from embaudit.measures.quality.passes import MultiPoolingEncoder, of_all
from embaudit.measures.quality.scores import ResampledScore
from embaudit.words.estimate import Estimate, shown, with_interval

DECLARED = "declared"
# As the cards of these families have them; whatever is behind the last space or line belongs to the prompt.
WORDINGS = {
    "none": "",
    "E5": "query: ",
    "Nomic": "search_query: ",
    "EmbeddingGemma": "task: search result | query: ",
    "BGE": "Represent this sentence for searching relevant passages: ",
    "BGE, paraphrased": "Find passages that are relevant to this search: ",
    "Instructor": "Represent the question for retrieving supporting documents: ",
    "Jina": "Represent the query for retrieving evidence documents: ",
    "E5 instruct": "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: ",
    "E5 instruct, paraphrased": "Instruct: Given a question, find the passages that answer it\nQuery: ",
}


@dataclass(frozen=True)
class Worded:
    """One wording of the instruction before queries.

    Attributes:
        name: its family; of a declared prompt that no family has, ``DECLARED``.
        change: score − that of the declared wording.
        words_score: nDCG@10 of TF-IDF with the wording as words of the query; None without words.
    """

    name: str
    prompt: str
    is_declared: bool
    score: ResampledScore
    change: ResampledScore
    words_score: float | None = None


def measure_wordings(checkpoint: Checkpoint, measured: MeasuredCollection) -> list[Worded]:
    """The score of one collection with each wording, the declared one first.

    A wording that leaves no room for a query is left out.

    Raises:
        MeasureError: if a vector is not finite.
    """
    declared = checkpoint.reading("query").prompt.text
    served = measured.score(measured.similarities())
    name = next((name for name, prompt in WORDINGS.items() if prompt == declared), DECLARED)
    found = [Worded(name, declared, True, served, served.minus(served), words_score(measured, declared))]
    for name, prompt in WORDINGS.items():
        if prompt == declared:
            continue
        reading = with_query_prompt(checkpoint, prompt)
        if reading.content_limit <= 0:
            continue
        encoder = MultiPoolingEncoder(reading)
        queries = encoder.passes(encoder.tokenize(measured.collection.queries)).served
        score = measured.score(of_all(queries, measured.documents.served, measured.similarity))
        found.append(Worded(name, prompt, False, score, score.minus(served), words_score(measured, prompt)))
    return found


def words_score(measured: MeasuredCollection, prompt: str) -> float | None:
    """nDCG@10 of TF-IDF with a prompt written before each query; None if there is no word."""
    judged = measured.collection
    cosines = word_cosines([prompt + query for query in judged.queries], judged.documents)
    return None if cosines is None else measured.score(cosines).value


def with_query_prompt(checkpoint: Checkpoint, prompt: str) -> Checkpoint:
    """The checkpoint as it reads queries, with another prompt before them."""
    recipe = checkpoint.recipe
    tokens: PromptTokens = prompt_tokens(prompt, checkpoint.tokenizer, recipe.call, is_pooled=recipe.pools_prompt)
    return replace(checkpoint, prompts={**checkpoint.prompts, "query": tokens}).reading("query")


def spread(worded: Sequence[Worded]) -> float:
    """The largest score less the smallest."""
    scores = [one.score.value for one in worded]
    return max(scores) - min(scores)


def place_of_declared(worded: Sequence[Worded]) -> int:
    """1 + the wordings that score more."""
    declared = next(one for one in worded if one.is_declared)
    return 1 + sum(one.score.value > declared.score.value for one in worded)


# Five points: more than a choice among good checkpoints makes.
LOST = 0.05
WORDING = Rule(
    "wording",
    "nDCG@10 with other wordings of the instruction before queries",
    look=WIN,
    look_if=f"another wording is better by at least {{look}}, or, of a checkpoint that declares a prompt, worse by at "
    f"least {number(LOST)}, by Holm's test over all of them",
    reason="no wording is clearly better than that of the training for any of four checkpoints. The worst costs "
    "all-MiniLM-L6-v2 .03, paraphrase-MiniLM-L3-v2 .07 and all-mpnet-base-v2 .09, which know none, and "
    "multilingual-e5-small (in four bits), trained with 'query: ', .08; TF-IDF .01",
)


def wording_findings(measured: MeasuredCollection, worded: Sequence[Worded]) -> list[Finding]:
    """One for a collection; what is clear by Holm's test over all other wordings."""
    declared = next(one for one in worded if one.is_declared)
    others = [one for one in worded if not one.is_declared]
    clear = [
        one for one, (is_clear, _) in zip(others, holm([one.change.p_value for one in others]), strict=True) if is_clear
    ]
    better = [one for one in clear if one.change.value >= WIN]
    worse = [one for one in clear if declared.prompt and one.prompt and one.change.value <= -LOST]
    least, most = min(worded, key=_value), max(worded, key=_value)
    is_known = declared.score.deviation is not None
    level: Level = "look" if better or worse else "ok" if is_known else "not measured"
    # What is clear is not always what is furthest away.
    named = max(better, key=_value) if better else min(worse or worded, key=_value)
    estimate = named.change.estimate()
    extreme = (
        "None is worse."
        if named.is_declared
        else f"{'Best' if better else 'Worst'} is {_said(named)}: {with_interval(estimate, signed=True)}."
    )
    sentence = (
        f"With {len(worded)} wordings of the instruction before a query, nDCG@10 on {measured.name} is "
        f"{shown(least.score.value)} to {shown(most.score.value)}, a spread of {shown(spread(worded))}; the declared "
        f"one ({_said(declared)}) has {shown(declared.score.value)} and is number {place_of_declared(worded)}. "
        f"{extreme}"
    )
    return [
        WORDING.finding(
            level,
            sentence,
            "Another wording finds more than the declared one: it may not be the one of its training."
            if better
            else "Whoever words the instruction otherwise gets another search, and scores with one wording say little.",
            f"Compare prompts in config_sentence_transformers.json with its card, or --query-prompt {named.prompt!r}."
            if better
            else "Set the declared prompt wherever queries are encoded: embaudit query quality-wordings",
            *(estimate.value, estimate.low, estimate.high),
        )
    ]


def wording_as_json(one: Worded) -> dict[str, Any]:
    numbers = {"score": as_json(one.score), "change": as_json(one.change)}
    return {
        "wording": one.name,
        "prompt": one.prompt,
        "is_declared": one.is_declared,
        "words_score": one.words_score,
    } | numbers


def wording_rows(figures: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A row per collection and wording; none unless they were asked for."""
    data = {one["name"]: one for one in figures["data"]}
    for name, worded in figures.get("wordings", {}).items():
        for one in worded:
            yield {
                **{"data_set": data[name]["data_set"], "queries": data[name]["items"]},
                **{key: one[key] for key in ("wording", "prompt", "is_declared", "words_score")},
                **Estimate(**one["score"]).columns("score"),
                **Estimate(**one["change"]).columns("change"),
            }


COLUMNS = {
    **{"wording": Column("wording"), "prompt": Column("before the query"), "data_set": Column("data set")},
    "score": Column("nDCG@10 [95 %]", ".3f"),
    "change": Column("beside the declared one [95 %]", "+.3f", "+.2f"),
    "words_score": Column("by TF-IDF", ".3f", is_detail=True),
}


def wording_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """The published rows, in their order, with the declared wording marked and the spaces of a prompt to be seen."""
    shown_rows = [
        {
            **row,
            "wording": f"{row['wording']} (declared)" if row["is_declared"] else row["wording"],
            "prompt": repr(row["prompt"]) if row["prompt"] else "",
        }
        for row in rows
    ]
    title = "Wordings of the instruction before queries, best first"
    return Table.of(COLUMNS, shown_rows, title, more="embaudit query quality-wordings")


def _value(one: Worded) -> float:
    return one.score.value


def _said(one: Worded) -> str:
    return f"{one.name}, {one.prompt!r}" if one.prompt else "no prompt"
