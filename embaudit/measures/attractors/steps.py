"""Attractors as a step: the hubs of a collection, and texts without content among its results.

The texts without content are our own, in English: such as stand in real indexes and answer nothing, by kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embaudit.measures.attractors import MEASURE_VERSION, AttractorRow, AttractorsSettings, AttractorSummaryRow, HubRow
from embaudit.measures.attractors.places import (
    asked_by_all,
    best_relevant,
    chance_of_meeting,
    counts_of,
    is_above,
    places_taken,
    random_skew,
    share_of,
    skew_of,
)
from embaudit.measures.collection import Searched, collection_of, read_collection
from embaudit.measures.geometry.figures import skewness
from embaudit.measures.run import Run
from embaudit.steps.results import CheckpointSpec, Staged, encoder_of
from embaudit.steps.step import Outputs, step
from embaudit.words.errors import NotMeasurable

if TYPE_CHECKING:
    from embaudit.checkpoint import Encoder

KINDS: dict[str, tuple[str, ...]] = {
    "headers and navigation": (
        "Home | About us | Services | Blog | Contact",
        "Skip to main content Menu Search Sign in My account Basket (0)",
        "You are here: Home > Help > Frequently asked questions > Article",
        "Previous page 1 2 3 4 5 … 27 Next page",
        "Share this article: Facebook X LinkedIn WhatsApp E-mail Print",
        "Related articles Most read Latest news See all topics",
        "Table of contents Introduction Background Results Conclusion References",
    ),
    "legal and cookie notices": (
        "We use cookies to improve your experience. By continuing to use this site you agree to our use of cookies. "
        "Accept all Reject all Manage preferences",
        "© 2024 All rights reserved. Terms of use Privacy policy Accessibility Imprint",
        "This e-mail and its attachments are confidential and intended solely for the addressee. If you have received "
        "it in error, please delete it.",
        "The information on this page is provided as is, without warranty of any kind, and does not constitute advice.",
        "Subscribe to our newsletter and never miss an update. You can unsubscribe at any time.",
        "By submitting this form you consent to the processing of your personal data under our privacy policy.",
    ),
    "error pages": (
        "404 Not Found. The page you are looking for does not exist or has been moved.",
        "500 Internal Server Error. Something went wrong on our side. Please try again later.",
        "Access denied. You do not have permission to view this page.",
        "Please enable JavaScript and cookies in your browser to continue.",
        "Your session has expired. Please log in again.",
        "Checking your browser before you access this site. This may take a few seconds.",
        "No results found. Try other search terms or remove some filters.",
    ),
    "one word or number": ("Yes", "Introduction", "42", "Summary", "None", "2019", "Untitled", "page 7"),
    "punctuation and markup": (
        "...",
        "-----------------------------",
        "* * *",
        "<br/><br/>&nbsp;&nbsp;</div></div>",
        "{{title}} {{body}}",
        "?!?!",
        "[image] [image] [image]",
    ),
    "placeholder text": (
        "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore "
        "magna aliqua.",
        "Your text goes here. Click to edit this paragraph and tell your visitors more.",
        "Test test test 123. This is a test document, please ignore.",
        "Sample text. Replace this text with your own content.",
        "TODO: write this section",
        "foo bar baz qux",
    ),
    "tables of numbers": (
        "12.4 13.1 9.8 11.0 10.7 14.2 8.9 12.8 13.3 10.1 9.4 11.7",
        "Q1 1,204 Q2 1,318 Q3 1,287 Q4 1,455 Total 5,264",
        "2020-01-04 0.31 2020-01-11 0.29 2020-01-18 0.35 2020-01-25 0.33",
        "| id | value | min | max |\n| 1 | 0.5 | 0.1 | 0.9 |\n| 2 | 0.7 | 0.2 | 0.8 |",
        "192.168.0.1 10.0.0.254 172.16.4.9 8080 443 22",
        "9a3f1c77e0b24d58 51c0de88aa73f914 0x7ffdc0de",
    ),
    "greetings and open questions": (
        "Hello! How can I help you today?",
        "Thank you for your question. We will get back to you as soon as possible.",
        "What is it, how does it work and why does it matter? Everything you need to know.",
        "Does anybody know the answer to this? Thanks in advance for any help!",
        "Frequently asked questions: who, what, when, where, why and how.",
        "I have a question about this. Can someone please explain?",
        "Good question! Here is the answer that you have been looking for.",
    ),
}


HUBS = 10
BEGINNING = 100
TEXTS = [text for texts in KINDS.values() for text in texts]
Row = dict[str, Any]


@dataclass(frozen=True)
class AttractorSimilarities:
    """Of a collection's (q) queries and (n) documents to the documents and to the (m) added texts; −∞: not found."""

    of_queries: np.ndarray
    of_documents: np.ndarray
    added: np.ndarray


@step("attractors", version=MEASURE_VERSION, tables=(AttractorRow, HubRow, AttractorSummaryRow), name="attractors")
def collection_attractors(out: Outputs, spec: CheckpointSpec, collection: Staged) -> None:
    """All tables of attractors.

    Args:
        collection: from ``collection_of``.
    """
    searched, encoder = read_collection(collection), encoder_of(spec, "document")
    similarities = AttractorSimilarities(
        searched.similarities(),
        searched.similarities(queries=searched.documents),
        _added(searched, encoder),
    )
    by_words = _by_words(searched)
    served, words = _standing(searched, similarities), None if by_words is None else _standing(searched, by_words)
    out.rows(AttractorRow, _kinds(searched, served, words), encodes=encoder.texts)
    out.rows(HubRow, _hubs(searched, served, words))
    out.rows(AttractorSummaryRow, [_summary(searched, served, words)])


def _added(searched: Searched, encoder: Encoder) -> np.ndarray:
    """(q, m) similarities to the added texts; without special tokens, one that the tokenizer cannot write has none."""
    ids = encoder.tokenize(TEXTS)
    is_written = np.array([len(one) > 0 for one in ids])
    found = np.full((len(searched.queries), len(TEXTS)), -np.inf)
    vectors = encoder.encode_ids([one for one in ids if one])
    found[:, is_written] = searched.similarities(documents=vectors)
    return found


def _by_words(searched: Searched) -> AttractorSimilarities | None:
    """By TF-IDF; a document without a word of the query is not found. None if no text has a word."""
    from embaudit.measures.quality.measured import word_cosines

    one = searched.collection
    cosines = word_cosines([*one.queries, *one.documents], [*one.documents, *TEXTS])
    if cosines is None:
        return None
    found = np.where(cosines > 0, cosines, -np.inf)
    count, queries = len(one.documents), len(one.queries)
    return AttractorSimilarities(found[:queries, :count], found[queries:, :count], found[:queries, count:])


@dataclass(frozen=True)
class RankingOutcome:
    """What one way to rank finds.

    Attributes:
        ranking: (n + q, ≤ 10) the nearest documents of each document and of each query.
        counts: (n,) the occurrences of each document.
        taken: by kind, (q, texts) which added texts are among a query's ten best, of the documents and this kind.
        above: by kind, (q, texts) which stand above every relevant document.
        above_documents: (q, n) which documents do.
    """

    ranking: np.ndarray
    counts: np.ndarray
    taken: dict[str, np.ndarray]
    above: dict[str, np.ndarray]
    above_documents: np.ndarray

    @property
    def is_clean(self) -> np.ndarray:
        """(q,) whether no added text stands above the relevant documents."""
        return np.logical_not(np.concatenate(list(self.above.values()), axis=1).any(axis=1))

    @property
    def has_first(self) -> np.ndarray:
        """(n + q,) whether the most frequent document is among the ten nearest."""
        return np.any(self.ranking == self.counts.argmax(), axis=1)


def _standing(searched: Searched, similarities: AttractorSimilarities) -> RankingOutcome:
    one, taken, above, start = searched.collection, {}, {}, 0
    best = best_relevant(similarities.of_queries, one.relevant)
    for kind, texts in KINDS.items():
        added = similarities.added[:, start : start + len(texts)]
        taken[kind] = places_taken(similarities.of_queries, added, one.own)
        above[kind] = is_above(added, best)
        start += len(texts)
    ranking = asked_by_all(similarities.of_queries, similarities.of_documents, one.own)
    above_documents = is_above(similarities.of_queries, best)
    for query, own in enumerate(one.own):
        above_documents[query, list(own)] = False
    return RankingOutcome(ranking, counts_of(ranking, len(one.documents)), taken, above, above_documents)


def _kinds(searched: Searched, served: RankingOutcome, words: RankingOutcome | None) -> list[Row]:
    count = len(searched.collection.documents)
    return [
        {
            "kind": kind,
            "data_set": searched.collection.name,
            "texts": len(texts),
            "queries": len(searched.queries),
            "occurrences": int(served.taken[kind].sum()),
            **share_of(np.any(served.taken[kind], axis=1)).columns("met"),
            "chance": chance_of_meeting(count, len(texts)),
            **share_of(np.any(served.above[kind], axis=1)).columns("above"),
            "worst_text": _worst(texts, served.taken[kind], served.above[kind]),
            "words_met": None if words is None else float(words.taken[kind].any(axis=1).mean()),
            "words_above": None if words is None else float(words.above[kind].any(axis=1).mean()),
        }
        for kind, texts in KINDS.items()
    ]


def _worst(texts: Sequence[str], taken: np.ndarray, above: np.ndarray) -> str | None:
    first = max(range(len(texts)), key=lambda place: (above[:, place].sum(), taken[:, place].sum(), -place))
    return texts[first] if above[:, first].any() or taken[:, first].any() else None


def _hubs(searched: Searched, served: RankingOutcome, words: RankingOutcome | None) -> list[Row]:
    one = searched.collection
    of_queries = served.ranking[len(one.documents) :]
    return [
        {
            "data_set": one.name,
            "rank": rank,
            "text": one.documents[place][:BEGINNING],
            "words": len(one.documents[place].split()),
            "occurrences": int(served.counts[place]),
            "words_occurrences": None if words is None else int(words.counts[place]),
            "met": float((of_queries == place).any(axis=1).mean()),
            "relevant": sum(place in grades for grades in one.relevant),
            "above_relevant": int(served.above_documents[:, place].sum()),
        }
        for rank, place in enumerate(np.argsort(-served.counts, kind="stable")[:HUBS].tolist(), start=1)
    ]


def _summary(searched: Searched, served: RankingOutcome, words: RankingOutcome | None) -> Row:
    documents, queries = searched.documents, searched.queries
    row: Row = {
        "data_set": searched.collection.name,
        "documents": len(documents),
        "queries": len(queries),
        "texts": len(TEXTS),
        **dict.fromkeys(("skew", "skew_low", "skew_high", "words_skew", "random_skew")),
        **dict.fromkeys(("top_share", "top_share_low", "top_share_high", "words_top_share")),
        **share_of(served.is_clean).columns("clean"),
        "words_clean": None if words is None else float(words.is_clean.mean()),
    }
    skew = skew_of(served.ranking, len(documents))
    if skew is not None:
        row |= {**skew.estimate().columns("skew"), "random_skew": random_skew(documents, len(queries))}
        row |= share_of(served.has_first).columns("top_share")
        if words is not None:
            row |= {"words_skew": skewness(words.counts), "words_top_share": float(words.has_first.mean())}
    return row


def measure(run: Run) -> list[Staged]:
    """Hubs of the collection, and texts without content among its results."""
    try:
        return run(collection_attractors, run.spec, collection_of(run, run.settings(AttractorsSettings)))
    except NotMeasurable as error:
        return [run.skipped("attractors", error)]
