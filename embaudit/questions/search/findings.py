"""What follows from the figures of a store's search, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from embaudit.declared.rule import Finding, Level, Rule, interval
from embaudit.questions.report import HOW_IT_IS_ASKED, HOW_IT_IS_READ
from embaudit.questions.search.curve import NAMES, MoreResults, least_change
from embaudit.questions.search.recall import Results, Third
from embaudit.questions.vectors.text_copies import copy_findings
from embaudit.words.errors import CorpusError
from embaudit.words.estimate import Estimate
from embaudit.words.sentences import first_of, within

if TYPE_CHECKING:
    from embaudit.questions.search.report import SearchReport

# Vectors of one length that are reconstructed of codes differ in length by less.
CODED = 1.5
# Ids that a sentence names.
NAMED = 5
FEW_ROWS = 11
LARGER = "Look at a larger part of what it will hold."
# What ``SearchReport.queries`` is before anything is asked, and if nothing can be.
NO_QUERIES = (0, "none")
# Times the present time of a query.
DEAR = 10.0
NO_SEARCH = Rule("no_search", reason="`not measured`: a file of vectors is searched by what it is loaded into")
NO_VECTORS = Rule("no_vectors", reason="`not measured`: no row has a vector")
NO_QUERIES_FOUND = Rule("no_queries", reason="`not measured`: no query has a vector")
NOT_ASKED = Rule(
    "not_asked", reason="`not measured`: a part that fails, such as a server that stops answering, with its reason"
)
ANOTHER_DIMENSION = Rule(
    "another_dimension", problem_if="queries and rows have other numbers of dimensions", reason="they cannot search it"
)
TOO_FEW_ROWS = Rule(
    "few_rows",
    look_if=f"fewer than {FEW_ROWS} rows",
    reason="of so few, the first ten say little. `not measured` if no query has a row to be found",
)
RECALL = Rule(
    "recall",
    "recall@10",
    look_if="its interval holds what is wanted (`--recall`)",
    problem_if="its interval is below that",
    reason="a store reports no error for what it misses",
)
UNREACHABLE = Rule(
    "unreachable",
    "rows that are not found by their own vector at the widest settings",
    problem=0.001,
    is_share=True,
    look_if="any",
    problem_if="interval from {problem}, or twice as many",
    reason="no query can find them, whatever it asks",
)
MISSED = Rule(
    "missed_by_own_vector",
    "rows that are not among the first ten of their own vector",
    look=0.005,
    problem=0.05,
    is_share=True,
    look_if="interval from {look}",
    problem_if="interval from {problem}",
    reason="a query that is exactly such a row does not find it; wider settings do",
)
FEWER = Rule(
    "fewer",
    look_if="fewer rows than asked, of a hundred",
    problem_if="of ten, or under a filter",
    reason="the store holds more that could be given",
)
REPEATED = Rule("repeated", problem_if="a query gets a row more than once", reason="it takes the place of another one")
GONE = Rule(
    "gone",
    problem_if="rows that the store does not have",
    reason="they were deleted, or the index is older than the rows",
)
METRIC = Rule(
    "metric",
    "share of the first ten that are others by the metric that is meant",
    look=0.01,
    is_share=True,
    look_if="from {look}, and nobody says what is meant",
    problem_if="from {look}, and the function declares another metric than the store",
    reason="below, another metric makes no difference that anybody sees. `not measured` if the store does not say "
    "what it ranks by",
)
SCORES = Rule("scores", look_if="inner products above 1", reason="who takes them for cosines is wrong")
FILTER = Rule(
    "filter",
    "recall@10 under the filter",
    look_if="as `recall`; or no row passes it",
    problem_if="as `recall`",
    reason="the search looks at too few rows that the filter keeps. `not measured` if the store cannot be asked with "
    "one",
)
LETS_THROUGH = Rule(
    "filter_lets_through",
    problem_if="rows that the filter should keep out",
    reason="an application shows what it was to hide",
)
SAME_CODES = Rule(
    "same_codes",
    "rows of different texts that share a code",
    problem=0.01,
    is_share=True,
    reason="which of them a query gets is chance",
)
CODES = Rule(
    "codes",
    "of the ten nearest by the function's own vectors, those that are so by the codes",
    look_if="as `recall`",
    problem_if="as `recall`",
    reason="what codes lose, no setting brings back",
)
FALLS = Rule(
    "where_it_falls",
    look_if="the intervals of the best and the worst third of neighbours are apart, where recall is not surely enough",
    reason="the mean over all queries hides them",
)


def search_findings(
    report: SearchReport, failed: Sequence[tuple[str, CorpusError]], is_filtered: bool
) -> Iterator[Finding]:
    """Every finding, in the order of the parts."""
    yield from _cannot(report)
    for what, error in failed:
        kept = "What was measured before is kept." if report.plain is not None else ""
        yield NOT_ASKED.finding(
            "not measured", f"{what.capitalize()} could not be asked: {within(error.happened)}", kept, error.next_step
        )
    yield from _recall(report)
    yield from _reach(report)
    yield from _results(report)
    yield from copy_findings(report.copies, "problem")
    yield from _metric(report)
    yield from _filter(report, is_filtered)
    yield from _codes(report)
    yield from _falls(report)
    for note in report.store.notes:
        yield HOW_IT_IS_READ.finding("look", note)
    for note in report.search.notes if report.search is not None else ():
        yield HOW_IT_IS_ASKED.finding("ok", note)


def _cannot(report: SearchReport) -> Iterator[Finding]:
    """What keeps a search from being measured at all."""
    store, profile = report.store, report.profile
    if store.search is None:
        yield NO_SEARCH.finding(
            "not measured",
            f"{store.shown} is no store that is searched by itself.",
            "A file of vectors is searched by what it is loaded into.",
            "Name that: a FAISS index, or the folder or address of a store.",
        )
    elif profile is not None and not profile.dimensions:
        sentence = f"{store.shown} has no row with a vector."
        yield NO_VECTORS.finding("not measured", sentence, advice="Fill it again.")
    elif report.search is not None and not report.search.metric:
        yield METRIC.finding(
            "not measured",
            f"{store.shown} does not say what it ranks by, or by what nobody else does.",
            advice="Make the index with a metric that it names: cosine, inner product or squared distance.",
        )
    elif profile is not None and report.queries[1].endswith("dimensions"):
        whose = f" of {report.function}" if report.function else ""
        yield ANOTHER_DIMENSION.finding(
            "problem",
            f"The queries{whose} have {report.queries[1]}, the store's rows {profile.dimension:,}: they cannot search "
            "it.",
            advice="Name the function that built it; embaudit vectors says which one did not.",
            value=float(profile.dimension),
        )
    elif report.search is not None and report.queries == NO_QUERIES:
        yield NO_QUERIES_FOUND.finding(
            "not measured",
            "There is nothing to ask: no query has a vector.",
            advice="Give queries: --queries FILE, and the function that encodes them.",
        )
    elif report.plain is not None and report.recall is None:
        yield TOO_FEW_ROWS.finding(
            "not measured",
            f"No query has a row to be found in {store.shown}: a stored vector that asks leaves itself out.",
            "With so few rows there is nothing to compare.",
            LARGER,
            value=float(report.plain.rows),
        )
    elif profile is not None and profile.rows < FEW_ROWS:
        yield TOO_FEW_ROWS.finding(
            "look",
            f"{store.shown} has {profile.rows:,} rows: of so few, the first ten say little.",
            advice=LARGER,
            value=float(profile.rows),
        )


def _recall(report: SearchReport) -> Iterator[Finding]:
    if report.plain is None or (share := report.recall) is None:
        return
    level = level_of(share, report.target)
    more = (
        "" if report.plain.many.recall is None else f", and {_share(report.plain.many.recall)} of the hundred nearest"
    )
    sentence = f"Its search finds {_share(share)} of the ten nearest rows{more}."
    meaning = f"At least {report.target:.0%} are wanted (--recall). The store reports no error for what it misses."
    advice = "" if level == "ok" else _advice(report)
    yield RECALL.finding(level, sentence, meaning, advice, *share)


def level_of(share: Estimate, target: float) -> Level:
    """A problem if a recall is below what is wanted, a look if it may be."""
    return "problem" if share.highest < target else "ok" if share.lowest >= target else "look"


def _advice(report: SearchReport) -> str:
    """The least change of a query's settings that is enough; or that the index must be built anew."""
    search = report.search
    assert search is not None
    found = least_change(list(report.tried), report.target)
    if found is not None:
        exact = " (exact search)" if search.exact is not None and search.exact.items() <= found.settings.items() else ""
        less = (
            f" {search.anew[0].upper()}{search.anew[1:]} would cost less." if found.times > DEAR and search.anew else ""
        )
        return f"{found.shown}{exact} finds {_share(found.recall)}, at {_times(found.times)} the time of a query.{less}"
    anew = search.anew or "finer codes, or the vectors themselves beside them"
    if search.is_exact or not (search.dials or search.exact):
        return f"Its settings cannot be changed in a query: build the index anew, with {anew}."
    if not report.tried:
        return "What other settings of a query would give was not measured: run the same command again."
    best = max(report.tried, key=lambda one: one.recall.known)
    if len(report.tried) == 1:
        return f"{best.shown} is the widest setting of a query that it takes: build the index anew, with {anew}."
    return (
        f"No setting of a query that was tried reaches it ({best.shown} finds {best.recall.known:.2f}): "
        f"build the index anew, with {anew}."
    )


def _reach(report: SearchReport) -> Iterator[Finding]:
    found = report.reached
    if found is None:
        return
    share, low, high = found.lost_share
    if found.unreachable:
        widest = ", ".join(f"{name} {value:,}" for name, value in found.widest.items())
        level: Level = "problem" if low >= UNREACHABLE.problem or share >= 2 * UNREACHABLE.problem else "look"
        yield UNREACHABLE.finding(
            level,
            f"{share:.1%}{interval(low, high, '.1%')} of the rows are not found even by their own vector"
            f"{f' at {widest}' if widest else ''}: {first_of(found.unreachable, NAMED)}.",
            "No query can find them, whatever it asks: nothing in the index leads there.",
            "Build the index anew, and compare: embaudit search says whether they are found then.",
            share,
            low,
            high,
        )
    share, low, high = found.share
    if found.widest and share > 0 and len(found.missed) > len(found.unreachable):
        yield MISSED.finding(
            MISSED.level(low),
            f"{share:.1%}{interval(low, high, '.1%')} of the rows are not among the first ten of their own vector at "
            f"the present settings: {first_of(found.missed, NAMED)}.",
            "",
            "",
            share,
            low,
            high,
            note="A query that is exactly such a row's vector does not find it.",
            hint="Wider settings of a query find them.",
        )


def _results(report: SearchReport) -> Iterator[Finding]:
    """Fewer results than asked, the same row twice, rows that are none."""
    plain = report.plain
    if plain is None:
        return
    for outcome in (plain.first, plain.many):
        if outcome.fewer:
            level: Level = "problem" if outcome is plain.first else "look"
            yield _fewer(outcome, report.queries[0], "", plain.more, level)
            break
    if plain.repeated:
        yield REPEATED.finding(
            "problem",
            f"{plain.repeated:,} of {report.queries[0]:,} queries get a row more than once.",
            "It takes the place of another one.",
            "Build the index anew, without adding a row twice.",
            float(plain.repeated),
        )
    if plain.gone:
        yield GONE.finding(
            "problem",
            f"The search gives rows that the store does not have: {first_of(plain.gone, NAMED)}.",
            "They were deleted, or the index beside the rows is older than they are.",
            "Build the index anew, or compact the store.",
            float(len(plain.gone)),
        )


def _fewer(outcome: Results, queries: int, where: str, more: MoreResults | None, level: Level = "problem") -> Finding:
    advice = (
        "No setting of a query that was tried gives more: build the index anew, or have the store filter before it "
        "searches."
        if where
        else "No setting of a query that was tried gives more: build the index anew."
    )
    if more is not None and more.shown:
        advice = f"{more.shown} gives all of them" if more.whole == more.asked else f"{more.shown} gives more"
        advice += "." if more.whole == more.asked else f": {more.whole:,} of {more.asked:,} then get all."
    return FEWER.finding(
        level,
        f"{outcome.fewer:,} of {queries:,} queries get fewer rows than the {outcome.truth.k} that they ask "
        f"for{where}, one of them {outcome.fewest}.",
        "The store holds more rows that could be given.",
        advice,
        float(outcome.fewer),
    )


def _metric(report: SearchReport) -> Iterator[Finding]:
    ranked = report.ranked
    if ranked is None:
        return
    meant = ranked.declared or "cosine"
    share = ranked.changed.get(meant)
    if share is not None and share.known >= METRIC.look and not _is_of_codes(report):
        who = f"{report.function} declares {NAMES[meant]}" if ranked.declared else f"by {NAMES[meant]} it would not"
        changed = f"{_share(share)} of the first ten are others by {NAMES[meant]}"
        lengths = ""
        if report.profile is not None and not report.profile.is_normalised:
            lengths = " Its vectors are not of one length."
        yield METRIC.finding(
            "problem" if ranked.declared else "look",
            f"The store ranks by {NAMES[ranked.store]}; {who}: {changed}.",
            f"Who expects {NAMES[meant]} gets other rows, and scores on another scale.{lengths}",
            f"Give the store's index {NAMES[meant]}, or put in vectors of unit length, which all three rank alike.",
            *share,
        )
    if ranked.store == "dot" and ranked.highest > 1 + 1e-3:
        yield SCORES.finding(
            "look",
            f"Its scores are {ranked.scores or 'no cosines'}, up to {ranked.highest:.3g}: who takes them for cosines "
            "is wrong.",
            advice="Divide by the lengths, or choose a cut-off on this scale.",
            value=ranked.highest,
        )


def _is_of_codes(report: SearchReport) -> bool:
    """Whether lengths differ no more than codes make vectors of one length differ."""
    if report.store.rounded is None or report.profile is None:
        return False
    low, high = np.quantile(report.profile.norms[report.profile.usable], (0.01, 0.99))
    return bool(high / low < CODED)


def _filter(report: SearchReport, is_filtered: bool) -> Iterator[Finding]:
    if not is_filtered or report.search is None:
        return
    if not report.search.takes_where:
        yield FILTER.finding(
            "not measured",
            f"{report.store.shown} cannot be asked with a filter: an application filters what it gives.",
            "Of the ten that it gives, those that the filter takes away are not replaced.",
            "Leave out --where, and ask for more than ten in the application.",
        )
        return
    one = report.filtered
    if one is not None and not one.rows:
        yield FILTER.finding("look", f"No row has {one.where}.", advice="Check the value, and its type.")
    if one is None or report.plain is None or (share := one.first.recall) is None:
        return
    part = f"{one.rows / max(report.plain.rows, 1):.2%} of the rows"
    level = level_of(share, report.target)
    without = "" if report.recall is None else f"; without the filter {report.recall.value:.2f}"
    yield FILTER.finding(
        level,
        f"Under {one.where} ({part}) it finds {_share(share)} of the ten nearest of these rows{without}.",
        "The search looks at too few rows that the filter keeps.",
        "" if level == "ok" else _under_filter(report),
        *share,
    )
    if one.first.fewer:
        yield _fewer(one.first, report.queries[0], f" under {one.where}", one.more)
    if one.gone:
        yield LETS_THROUGH.finding(
            "problem",
            f"Under {one.where} the search gives rows that the filter should keep out: {first_of(one.gone, NAMED)}.",
            "An application shows what this filter was to hide.",
            "Check how the store types that field, and filter again what it gives.",
            value=float(len(one.gone)),
        )


def _under_filter(report: SearchReport) -> str:
    """What was tried under the filter, and what is left if that is not enough."""
    rest = "have the store filter before it searches, or give these rows an index of their own."
    tried = report.tried_filtered
    if not tried:
        return rest[0].upper() + rest[1:]
    found = least_change(list(tried), report.target)
    if found is not None:
        return f"{found.shown} finds {_share(found.recall)} there, at {_times(found.times)} the time of a query."
    best = max(tried, key=lambda one: one.recall.known)
    if not best.changed:
        return f"No setting of a query that was tried finds more there: {rest}"
    return f"No setting of a query that was tried reaches it there ({best.shown} finds {_share(best.recall)}): {rest}"


def _codes(report: SearchReport) -> Iterator[Finding]:
    share = report.codes
    if report.store.rounded is not None and (alike := _alike(report)) >= SAME_CODES.problem:
        yield SAME_CODES.finding(
            "problem",
            f"{alike:.0%} of the rows have the same code as another row: the index cannot tell them apart.",
            "Which of them a query gets is chance.",
            "Finer codes, or the vectors beside them, which rank the first hundred again.",
            alike,
        )
    if share is None:
        return
    level = level_of(share, report.target)
    yield CODES.finding(
        level,
        f"The index keeps codes, by which {_share(share)} of the ten nearest in a sample are those of "
        f"{report.function}'s own vectors.",
        "What the codes lose, no setting of a query brings back. Among all rows it is more.",
        "Finer codes, or the vectors beside them, by which the first hundred are ranked again.",
        *share,
    )


def _alike(report: SearchReport) -> float:
    """Estimate of the rows that share their bits with a row of another text; without texts, with any."""
    profile = report.profile
    if profile is None or not len(profile.hashes):
        return 0.0
    if profile.texts is None:
        _, counts = np.unique(profile.hashes, return_counts=True)
        return float(counts[counts > 1].sum() / counts.sum())
    pairs = np.unique(np.stack([profile.hashes.astype(np.int64), profile.texts]), axis=1)[0]
    _, texts = np.unique(pairs, return_counts=True)
    return float(texts[texts > 1].sum() / texts.sum())


def _falls(report: SearchReport) -> Iterator[Finding]:
    """The way to sort neighbours by which recall differs most, if it differs by more than intervals."""
    if report.recall is None or report.recall.lowest >= report.target:
        return
    ways: dict[str, list[Third]] = {}
    for third in report.thirds:
        ways.setdefault(third.by, []).append(third)
    told = []
    for parts in ways.values():
        worst, best = (pick(parts, key=lambda one: one.found.known) for pick in (min, max))
        if worst.found.highest < best.found.lowest:
            told.append((best.found.known - worst.found.known, worst, best))
    if told:
        _, worst, best = max(told, key=lambda one: one[0])
        yield FALLS.finding(
            "look",
            f"It misses most among {worst.which}: {_share(worst.found)} found; of {best.which} {_share(best.found)}.",
            "The mean over all queries hides them.",
            "Choose settings by what these find.",
            **worst.found.as_json(),
        )


def _share(share: Estimate) -> str:
    return f"{share:.2f}"


def _times(times: float) -> str:
    return f"{times:.1f} times" if 1.05 <= times < DEAR else f"{times:.0f} times" if times >= DEAR else "about"
