"""Why did this row come up? What, if it were not so, would leave it behind the first k.

The rules, in order; the first that holds and that its trial confirms is said, or else the first that holds:

``foreign vector``     its text's own vector would not be among them
``sticky tokens``      without the severe tokens in the query and in its text, it would not be
``hub``                it stands in everybody's results, and would not by how much nearer than usual it is
``few words``          it is a heading among texts, and with the next row's text behind it would not be; ``no content``
``1 word of the query`` … without that, or two of them, or one or two of its text, it would not be
``the query's words``  its text repeats the query's words: without all of them it would not be
``alike``              none of these
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from embaudit.embedders.function import EmbeddingFunction
from embaudit.measures.quality.measured import words_of
from embaudit.questions.search.exact import scores_of
from embaudit.questions.vectors.forms import encode_rows
from embaudit.questions.why import mends
from embaudit.questions.why.above import CHANCE, HUB, AboveAmong, Kind, RowAbove, kinds_of, usual_words
from embaudit.questions.why.case import Case, Diagnosis
from embaudit.questions.why.mends import Mend, MendCost, OtherQuery, TriedMend, encoded, nth
from embaudit.questions.why.other_ways import Attempt, OtherWays, add_without_sticky, has_vector, ranked_in_place
from embaudit.questions.why.ranked import FIRST, WIDE, observed, ranked
from embaudit.questions.why.walk import OTHERS, SearchTraces
from embaudit.stores.store import Store
from embaudit.words.sentences import quoted

Side = Literal["query", "text"]
# Words that are left out one by one, of a query and of a text, and the strongest of each that are so in pairs.
MOST: Mapping[Side, int] = {"query": 40, "text": 80}
PAIRED = 6
# Of these, those that are shown.
LEFT_OUT = 10
# A text repeats a query that has so many of its words, by weight, and at least so many.
REPEATS, FEWEST = 0.8, 3


@dataclass(frozen=True)
class LeftOut:
    """Words of a query or of a text, and what came of leaving them out, wherever they stand."""

    side: Side
    words: tuple[str, ...]
    attempt: Attempt


@dataclass(frozen=True)
class CameUp:
    """What is known of a row that came up.

    Attributes:
        case: as it was walked.
        kind: what makes the row itself odd; empty for nothing.
        words, usual: of its text, and of a usual one in the store.
        share: of the query's words, by weight, those that its text has.
        left_out: words, the farthest first.
        without_all: its rank without all of the query's words in its text; None if none is there, or all are.
        again: its rank by its text's own vector; None if it has that.
        joined: its rank with the next row's text behind its own, if that has few words; None if there is none.
        usually: its rank by how much nearer than usual it is; None if that is not known.
        sticky, sticky_rank: severe tokens in query or text, and its rank without them.
    """

    case: Case
    kind: Kind
    words: int
    usual: float
    share: float
    left_out: tuple[LeftOut, ...]
    without_all: int | None
    again: int | None
    joined: int | None
    usually: int | None
    sticky: tuple[str, ...]
    sticky_rank: int | None


def without_words(text: str, words: Sequence[str]) -> str:
    """A text in which none of these words stands any more."""
    pattern = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    return " ".join(re.sub(rf"(?<![^\W_])(?:{pattern})(?![^\W_])", "", text, flags=re.IGNORECASE).split())


def came_up(walked: SearchTraces, store: Store, function: EmbeddingFunction, place: int) -> CameUp:
    """Look at the row of a case that was walked, which has a rank."""
    case, queries, means = walked.cases[place], walked.queries, walked.means
    assert case.row is not None
    assert case.row.vector is not None
    assert queries is not None
    assert means is not None
    query, stored = queries[place], np.asarray(case.row.vector, np.float32)
    # What is changed in a text says nothing of a vector that is not of it.
    embedded = means.embedded.get(case.row.number, "")
    text, again = ("", embedded) if case.is_own is False else (embedded, "")
    usual = usual_words(walked.gathered.texts or ())
    row = RowAbove(case.row.id or "", case.row.text, case.score or 0.0, case.in_results)
    others = min(OTHERS, len(walked.gathered.profile.sample))
    (odd,) = kinds_of([row], AboveAmong(others, walked.rows, usual))
    below = walked.gathered.texts[case.row.number + 1 :][:1] if walked.gathered.texts and text else []
    joined = f"{text}\n{below[0]}" if below and below[0] and odd.kind in ("no content", "few words") else ""
    sides: dict[Side, str] = {"query": case.query, "text": text}
    singles = [(side, (word,)) for side in sides for word in list(dict.fromkeys(words_of(sides[side])))[: MOST[side]]]
    both = tuple(dict.fromkeys(word for word in words_of(case.query) if word in set(words_of(text))))

    def attempts(left_out: Sequence[tuple[Side, tuple[str, ...]]], *, is_first: bool) -> dict[object, Attempt]:
        """What came of each of them, encoded together and ranked in one pass."""
        one = OtherWays(place, text, [], None, "", [])
        changed = {key: without_words(sides[key[0]], key[1]) for key in left_out}
        if is_first and both:
            changed["text", both] = without_words(text, both)
        ranked_texts: dict[object, str] = {key: said for key, said in changed.items() if key[0] == "text" and said}
        more = {mends.AGAIN: again, JOINED: joined} if is_first else {}
        ranked_texts |= {mend: said for mend, said in more.items() if said}
        own = encode_rows(function, list(ranked_texts.values()))[:, : len(query)] if ranked_texts else np.empty((0, 1))
        vectors = dict(zip(ranked_texts, means.as_kept(own) if len(own) else own, strict=True))
        one.add(query, {key: vector for key, vector in vectors.items() if has_vector(vector)}, stored)
        asked = {key: said for key, said in changed.items() if key[0] == "query" and said}
        ways = encoded(function, [OtherQuery("", said, "query") for said in asked.values()]) if asked else ()
        for key, vector in zip(asked, ways, strict=True):
            if has_vector(vector):
                one.add(vector[: len(query)], {key: stored}, stored)
        if is_first and means.severe:
            add_without_sticky(one, function, case, query, stored, means)
        sticky.extend(one.sticky)
        ((found, _),) = ranked_in_place(store, [one], {place: case}, walked.metric, lambda done: None)
        return found

    sticky: list[str] = []
    found = attempts(singles, is_first=True)

    def rank(name: object) -> int | None:
        return found[name].rank if name in found else None

    k = means.cut_off.k
    pairs: list[tuple[Side, tuple[str, ...]]] = []
    for side in sides:
        own_singles = [key for key in singles if key[0] == side and key in found]
        if not any(found[key].rank > k for key in own_singles):
            strongest = sorted(own_singles, key=lambda key: found[key].score)[:PAIRED]
            pairs += [(side, (one[1][0], other[1][0])) for one, other in combinations(strongest, 2)]
    if pairs:
        found |= attempts(pairs, is_first=False)
    left_out = [LeftOut(*key, found[key]) for key in (*singles, *pairs) if key in found]
    return CameUp(
        case,
        odd.kind,
        len((case.row.text or "").split()),
        usual,
        0.0 if means.words is None else means.words.share(case.query, set(words_of(text))),
        tuple(sorted(left_out, key=lambda one: (-one.attempt.rank, len(one.words)))),
        rank(("text", both)),
        rank(mends.AGAIN),
        rank(JOINED),
        _usually(walked, store, place) if case.in_results >= max(HUB, CHANCE * FIRST / max(walked.rows, 1)) else None,
        tuple(sticky),
        rank(mends.WITHOUT_STICKY),
    )


def _usually(walked: SearchTraces, store: Store, place: int) -> int | None:
    """Its rank among the first hundred by 2 s(q, x) − r(x): r is the mean of a row's ten best cosines to other rows.

    Cross-domain similarity local scaling (Conneau et al. 2018) without the query's own r, which is the same for all
    rows. Rows behind the first hundred are none nearer; so it is this rank at least.
    """
    case, queries = walked.cases[place], walked.queries
    assert case.row is not None
    assert queries is not None
    first = ranked(store, queries[[place]], [[]], ["cosine"], lambda done: None, kept=WIDE)
    nearest = first.exact.nearest["cosine"]
    numbers = [int(one) for one in nearest.rows[0] if one >= 0][:WIDE]
    passing = walked.gathered.passing
    own = case.row.number if passing is None else int(np.searchsorted(passing, case.row.number))
    vectors: dict[int, np.ndarray] = {}
    for _ in observed(store, numbers, vectors).batches():
        pass
    if own not in vectors:
        return None
    rows = np.stack([vectors[one] for one in numbers]).astype(np.float32)
    sample = walked.gathered.profile.sample
    cosines = scores_of("cosine", np.asarray(sample.vectors[:OTHERS], np.float32), rows)
    # A row in the sample is not its own neighbour.
    whole = np.asarray(numbers) if passing is None else passing[numbers]
    cosines[np.asarray(sample.numbers[:OTHERS])[:, None] == whole[None]] = -np.inf
    usual = np.sort(cosines, axis=0)[-FIRST:].mean(axis=0)
    corrected = 2 * nearest.scores[0][: len(numbers)] - usual
    return 1 + int((corrected > corrected[numbers.index(own)]).sum())


JOINED = Mend("with the next row's text behind it", MendCost.TEXTS, "the two are encoded as one")
NEARER_THAN_USUAL = Mend(
    "ranked by how much nearer it is than usual", MendCost.INDEX, "twice its cosine less that of others"
)


def why_it_came_up(one: CameUp, k: int) -> Diagnosis:
    """The first rule that its trial confirms, or else the first that holds."""
    return Diagnosis.first_confirmed(_causes(one, k))


def _causes(one: CameUp, k: int) -> Iterator[Diagnosis]:
    case = one.case
    rank = case.rank if case.answer is None or case.answer.rank is None else case.answer.rank
    assert rank is not None
    start = f"It is {nth(rank)}"

    def trial(mend: Mend, after: int | None, why_not: str = "") -> TriedMend:
        return TriedMend(mend, rank, after, k, why_not=why_not, is_away=True)

    if case.is_own is False:
        whose = f", but of that of {case.of_other}" if case.of_other else ""
        why_not = "" if one.again is not None else "the function gives no vector for its text"
        yield Diagnosis(
            "came up",
            f"{start}, and its vector is not that of its text{whose}.",
            "Encode this row again; embaudit vectors says how many others are so.",
            "foreign vector",
            trial(mends.AGAIN, one.again, why_not),
        )
    if one.sticky_rank is not None:
        yield Diagnosis(
            "came up",
            f"{start}, and it has sticky tokens, or the query has: {', '.join(one.sticky[:3])}.",
            "Take them out of texts before they are embedded: embaudit screen FILE names the texts.",
            "sticky tokens",
            trial(mends.WITHOUT_STICKY, one.sticky_rank),
        )
    if one.usually is not None:
        yield Diagnosis(
            "came up",
            f"{start}, as in {case.in_results:.0%} of the first tens of other rows.",
            "Leave it out of the index; embaudit vectors and the measure attractors name such rows.",
            "hub",
            trial(NEARER_THAN_USUAL, one.usually),
        )
    if one.kind in ("no content", "few words"):
        yield Diagnosis(
            "came up",
            f"{start}, and it has {one.words:,} {'word' if one.words == 1 else 'words'}, where a usual text has "
            f"{one.usual:.0f}.",
            "Join headings with the text below them, or leave them out of the index.",
            one.kind,
            trial(JOINED, one.joined, "" if one.joined is not None else "the next row has no text"),
        )
    for side, mend in (
        ("query", "Ask with other words, or with more of them."),
        ("text", "Say in the text what it is about, or cut it into pieces."),
    ):
        own = [it for it in one.left_out if it.side == side and it.attempt.rank > k]
        for it in sorted(own, key=lambda it: (len(it.words), -it.attempt.rank))[:1]:
            words = " and ".join(map(quoted, it.words))
            what = "word" if len(it.words) == 1 else "words"
            out = Mend(f"without {words} in the {side}", MendCost.QUERY, "the rest is encoded")
            yield Diagnosis(
                "came up",
                f"{start} for the {what} {words} of {'the query' if side == 'query' else 'its text'}.",
                mend,
                f"{len(it.words)} {what} of the {side}",
                trial(out, it.attempt.rank),
            )
    if one.share >= REPEATS and len(set(words_of(case.query))) >= FEWEST and one.without_all is not None:
        yield Diagnosis(
            "came up",
            f"{start}, and its text repeats the query's words.",
            "Search for what texts mean beside their words, or leave such texts out of the index.",
            "the query's words",
            trial(Mend("without all of them in its text", MendCost.TEXTS, "the rest is encoded"), one.without_all),
        )
    yield Diagnosis(
        "came up",
        f"{start}, and no word or pair of words alone brings it there: the function takes the two for alike.",
        "Tune the function on such pairs, or rank the results again.",
        "alike",
    )


def not_shown(case: Case, k: int, *, is_below: bool = False) -> Diagnosis:
    """Of a row that does not come up; whether for its score is below the cut-off."""
    if is_below:
        return Diagnosis("not shown", "Its score is below the cut-off.")
    if case.passes is False:
        return Diagnosis("not shown", "The filter leaves it out.")
    if case.vector:
        return Diagnosis("not shown", f"Its vector is {case.vector}: no search can find it.")
    if case.rank is None or case.rank <= k:
        return Diagnosis("not shown", f"The store does not show it among the first {k}.")
    return Diagnosis("not shown", f"It is {nth(case.rank)}, and the first {k} are shown.")
