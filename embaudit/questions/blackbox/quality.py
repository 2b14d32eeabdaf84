"""What the vectors of a served model are worth on pairs and queries, and whether prompts or lower case would help."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from embaudit.checkpoint import TextKind
from embaudit.declared.rule import Finding, guarded
from embaudit.measures.quality.alternatives import Alternative, is_worth_trying
from embaudit.measures.quality.counterfactual import AS_DECLARED, counterfactual_findings
from embaudit.measures.quality.golden import Encode, measure_golden
from embaudit.measures.quality.material import Collection, Material, ScoredPairs
from embaudit.measures.quality.measured import (
    Measured,
    MeasuredCollection,
    MeasuredPairs,
    collection_overlap,
    pair_overlap,
)
from embaudit.measures.quality.passes import SERVED, Pass, of_all, of_pairs
from embaudit.measures.quality.quality import (
    QualityReport,
    alternative_as_json,
    findings_of_collapse,
    findings_of_scale,
    measure_all,
    measure_all_golden,
    missing_findings,
    no_figures,
    scores_of,
)
from embaudit.measures.quality.scale import SCORE_SCALE
from embaudit.measures.quality.scores import CollectionScorer, PairScorer, ResampledScore
from embaudit.measures.quality.wordings import WORDINGS
from embaudit.measures.quality.words import COLLAPSED, WORDS, words_findings
from embaudit.words.errors import MeasureError

ROLES: tuple[TextKind, TextKind] = ("query", "document")
# What another way to ask is tried on.
PAIRS, QUERIES, DOCUMENTS = 100, 50, 100
# What gains nothing on half of the queries is not tried on the rest: documents are most of what is sent.
FIRST_QUERIES, FIRST_DOCUMENTS = 25, 40


@dataclass(frozen=True)
class CallerPrompts:
    """How texts are sent.

    Attributes:
        query, document, text: what is put before queries, documents, and texts that are neither.
        change: what is done to a text first.
    """

    query: str = ""
    document: str = ""
    text: str = ""
    change: Callable[[str], str] = str

    def texts(self, texts: Sequence[str]) -> list[str]:
        return [self.text + self.change(text) for text in texts]

    def queries(self, texts: Sequence[str]) -> list[str]:
        return [self.query + self.change(text) for text in texts]

    def documents(self, texts: Sequence[str]) -> list[str]:
        return [self.document + self.change(text) for text in texts]


# What well-known families want before texts, which their servers do not always add.
FAMILIES = {
    "the pair of prompts of E5": CallerPrompts(WORDINGS["E5"], "passage: "),
    "the pair of prompts of Nomic": CallerPrompts(WORDINGS["Nomic"], "search_document: "),
    "the query prompt of BGE": CallerPrompts(WORDINGS["BGE"]),
    "an instruction before queries": CallerPrompts(WORDINGS["E5 instruct"]),
}
WHERE_PROMPTS = "the prompts that callers or the server have to add"
WHERE_CASE = "the server's tokenizer, or its do_lower_case"


def served_quality(encode: Encode, material: Material, asking: CallerPrompts) -> QualityReport:
    """Scores beside word overlap, collapse, the scale, and other ways to ask; nothing that needs the model's files."""
    findings = missing_findings(material)
    measured, failed = measure_all(
        material,
        lambda pairs: _measure_pairs(encode, pairs, asking),
        lambda collection: _measure_collection(encode, collection, asking),
    )
    findings += failed
    figures = no_figures()
    if measured:
        figures["data"] = [scores_of(one) for one in measured]
        findings += guarded(WORDS.name, lambda: words_findings(measured))
        pairs = [one for one in measured if isinstance(one, MeasuredPairs)]
        for one in pairs:
            findings += guarded(COLLAPSED.name, lambda one=one: findings_of_collapse(one, figures))  # type: ignore[misc]

        def of_alternatives() -> list[Finding]:
            tried = list(_alternatives(encode, measured, asking))
            figures["alternatives"] = [alternative_as_json(one) for one in tried]
            return counterfactual_findings(tried)

        findings += guarded(AS_DECLARED.name, of_alternatives)
        for one in pairs:
            findings += guarded(SCORE_SCALE.name, lambda one=one: findings_of_scale(one, figures))  # type: ignore[misc]
    in_role = {"query": asking.queries, "document": asking.documents, "text": asking.texts}
    golden, said = measure_all_golden(
        material,
        lambda one: measure_golden(
            lambda texts, role: encode(in_role[role](texts), role),
            one,
            "cosine",
            collection_overlap(one.queries, one.documents),
        ),
        figures,
    )
    return QualityReport((*findings, *said), figures, tuple(measured), golden)


def _measure_pairs(encode: Encode, pairs: ScoredPairs, asking: CallerPrompts) -> MeasuredPairs:
    """Pairs of which both texts have a vector.

    Raises:
        MeasureError: if there are fewer than two.
    """
    distinct = list(dict.fromkeys([*pairs.firsts, *pairs.seconds]))
    places = {text: place for place, text in enumerate(distinct)}
    vectors = encode(asking.texts(distinct), "text")
    first, second = (vectors[[places[text] for text in side]] for side in (pairs.firsts, pairs.seconds))
    kept = np.flatnonzero(np.isfinite(first).all(axis=1) & np.isfinite(second).all(axis=1))
    if len(kept) < 2:
        raise MeasureError(f"{len(pairs.scores) - len(kept)} of {len(pairs.scores)} pairs have no vector.")
    part = pairs.at(kept)
    one, two = (Pass({SERVED: rows[kept]}) for rows in (first, second))
    baselines = pair_overlap(part.firsts, part.seconds)
    return MeasuredPairs(part, PairScorer(part), one, two, (), (), "cosine", baselines)


def _measure_collection(encode: Encode, collection: Collection, asking: CallerPrompts) -> MeasuredCollection:
    """Texts without a vector find nothing, and are not found."""
    queries = encode(asking.queries(collection.queries), "query")
    documents = encode(asking.documents(collection.documents), "document")
    if not (np.isfinite(queries).any() and np.isfinite(documents).any()):
        raise MeasureError("No query, or no document, has a vector.")
    one, two = (Pass({SERVED: np.nan_to_num(rows)}) for rows in (queries, documents))
    baselines = collection_overlap(collection.queries, collection.documents)
    return MeasuredCollection(collection, CollectionScorer(collection), one, two, (), (), "cosine", baselines)


def _alternatives(encode: Encode, measured: Sequence[Measured], asking: CallerPrompts) -> Iterator[Alternative]:
    """The dot product, half the dimensions, lower-cased texts, and the prompts of well-known families."""
    served = {one.name: one.score(one.similarities()) for one in measured}
    first = measured[0].firsts if isinstance(measured[0], MeasuredPairs) else measured[0].documents
    lengths = np.linalg.norm(first.served, axis=1)
    if np.ptp(lengths) > 1e-3 * lengths.max():
        gains = {one.name: one.score(one.similarities(similarity="dot")).minus(served[one.name]) for one in measured}
        yield Alternative("similarity", "the dot product", "cosine", "the similarity that the index is set to", gains)
    tried = {"lower-cased text": replace(asking, change=str.lower), **FAMILIES, "text without prompts": CallerPrompts()}
    for name, other in tried.items():
        if other != asking:
            yield from _asked(encode, measured, asking, other, name)


def _asked(
    encode: Encode, measured: Sequence[Measured], asking: CallerPrompts, other: CallerPrompts, name: str
) -> Iterator[Alternative]:
    """Nothing if it changes no text, or if the texts get no vector so.

    Prompts are tried on queries, which they are for; another case on pairs, and on queries if it gains there.
    """
    is_case = other.change is not asking.change
    gains: dict[str, ResampledScore] = {}
    if is_case:
        for one in measured:
            if isinstance(one, MeasuredPairs) and (gain := _gain_on_pairs(encode, one, asking, other)):
                gains[one.name] = gain
    if not gains or any(is_worth_trying(gain) for gain in gains.values()):
        for one in measured:
            if isinstance(one, MeasuredCollection):
                for queries, documents in ((FIRST_QUERIES, FIRST_DOCUMENTS), (QUERIES, DOCUMENTS)):
                    part = one.collection.first(queries, documents)
                    if (gain := _gain_on_queries(encode, one, part, asking, other)) is None:
                        break
                    gains[one.name] = gain
                    if gain.value <= 0:
                        break
    if gains:
        declared, where = ("text as written", WHERE_CASE) if is_case else ("way to ask", WHERE_PROMPTS)
        yield Alternative("case" if is_case else "prompts", name, declared, where, gains)


def _gain_on_pairs(
    encode: Encode, one: MeasuredPairs, asking: CallerPrompts, other: CallerPrompts
) -> ResampledScore | None:
    part = one.pairs.first(PAIRS)
    sides = [other.texts(side) for side in (part.firsts, part.seconds)]
    if sides == [asking.texts(side) for side in (part.firsts, part.seconds)]:
        return None
    first, second = (encode(side, "text") for side in sides)
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return None
    scorer = PairScorer(part)
    return scorer.spearman(of_pairs(first, second)).minus(scorer.spearman(one.similarities()[: len(part.scores)]))


def _gain_on_queries(
    encode: Encode,
    one: MeasuredCollection,
    some: tuple[Collection, np.ndarray],
    asking: CallerPrompts,
    other: CallerPrompts,
) -> ResampledScore | None:
    """What part of a collection, whose documents have these places, gains; None if it cannot be told."""
    part, places = some
    before = one.queries.served[: len(part.queries)], one.documents.served[places]
    sent = (
        (asking.queries(part.queries), other.queries(part.queries)),
        (
            asking.documents(part.documents),
            other.documents(part.documents),
        ),
    )
    if all(was == would_be for was, would_be in sent):
        return None
    # What would be sent as it was has its vector already.
    queries, documents = (
        known if was == would_be else encode(would_be, role)
        for (was, would_be), known, role in zip(sent, before, ROLES, strict=True)
    )
    if not (np.isfinite(queries).all() and np.isfinite(documents).all()):
        return None
    scorer = CollectionScorer(part)
    return scorer.ndcg(of_all(queries, documents)).minus(scorer.ndcg(of_all(*before)))
