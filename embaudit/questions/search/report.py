"""Asks a store's own search, holds it against exact search over the same vectors, and says what follows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from embaudit.declared.document import Page
from embaudit.declared.rule import Finding, Level
from embaudit.embedders.function import EmbeddingFunction
from embaudit.questions.report import AnswerFigure, Report, figure_of
from embaudit.questions.search.curve import DECLARED, ENOUGH, RankedBy, TriedSetting, ranked_by, tried_settings
from embaudit.questions.search.exact import exact_search
from embaudit.questions.search.findings import NO_QUERIES, level_of, search_findings
from embaudit.questions.search.measured import (
    FIRST,
    KeptParts,
    Progress,
    SearchedRows,
    Tenant,
    TenantFilters,
    kept_by_codes,
    searched,
    tenant_findings,
    tenants_of,
    values_of,
)
from embaudit.questions.search.measured import QUERIES as TENANT_QUERIES
from embaudit.questions.search.page import search_page
from embaudit.questions.search.recall import (
    AMONG,
    Queries,
    Reached,
    Third,
    beginnings,
    of_rows,
    of_texts,
    of_vectors,
    reached,
    thirds,
)
from embaudit.questions.vectors.profile import Profile, SomeRows, profile_of
from embaudit.questions.vectors.text_copies import TextCopies, text_copies
from embaudit.stores.search import Settings, StoreSearch, Where
from embaudit.stores.store import Store
from embaudit.words.errors import UsageError
from embaudit.words.estimate import Estimate
from embaudit.words.sentences import within

Verdict = Literal["finds what it holds", "does not find what it holds", "could not be told"]
QUERIES, RECALL = 200, 0.95
# Rows that are asked for by themselves: of any store, and of a graph in memory.
ROWS, ROWS_OF_GRAPH = 2_000, 10_000
# Of an inner product of vectors of other lengths, each row has to be ranked exactly first.
RANKED_ROWS = 400


@dataclass(frozen=True)
class SearchReport(Report):
    """What came of a store's search.

    Attributes:
        store: as the user named it.
        search: how it is searched; None if it cannot be.
        settings: of a query, as the application has them.
        target: the recall that is wanted.
        queries: how many, of what.
        plain: without a filter; None if nothing could be asked.
        filtered: with the one that was asked for.
        reached: rows asked for by themselves.
        tried, tried_filtered: settings of a query, the present one first; and under the filter, if it is lossy there.
        ranked: what other metrics would change.
        thirds: where recall falls.
        tenants: what is found under a filter on each value of a field.
        codes: what the index's codes keep of the function's neighbours; None if it keeps vectors, or that is not known.
        copies: texts that are stored several times; None for a store without texts.
    """

    levels: ClassVar[dict[str, Level]] = {
        "finds what it holds": "ok",
        "does not find what it holds": "problem",
        "could not be told": "not measured",
    }

    store: Store
    search: StoreSearch | None
    settings: dict[str, int]
    target: float
    queries: tuple[int, str]
    function: str = ""
    profile: Profile | None = None
    plain: SearchedRows | None = None
    filtered: SearchedRows | None = None
    reached: Reached | None = None
    tried: tuple[TriedSetting, ...] = ()
    tried_filtered: tuple[TriedSetting, ...] = ()
    ranked: RankedBy | None = None
    thirds: tuple[Third, ...] = ()
    codes: Estimate | None = None
    copies: TextCopies | None = None
    tenants: tuple[Tenant, ...] = ()
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0

    @property
    def verdict(self) -> Verdict:
        if any(finding.level == "problem" for finding in self.findings):
            return "does not find what it holds"
        return "could not be told" if self.plain is None or self.recall is None else "finds what it holds"

    @property
    def recall(self) -> Estimate | None:
        """Recall@10 at the present settings, without a filter."""
        return None if self.plain is None else self.plain.first.recall

    @property
    def line(self) -> str:
        match self.verdict:
            case "finds what it holds":
                return f"Its search finds what the store holds{self.and_look}."
            case "does not find what it holds":
                return self.by_level()[0].sentence
            case _:
                reason = next((one.sentence for one in self.by_level() if one.level == "not measured"), "")
                because = f": {within(reason)}" if reason else "."
                return f"Cannot tell whether its search finds what the store holds{because}"

    def page(self) -> Page:
        return search_page(self)

    def answer_figures(self) -> Iterator[AnswerFigure]:
        asked = self.queries[0]
        for name, rows in (("", self.plain), ("filtered", self.filtered)):
            if rows is not None:
                for k, outcome in ((10, rows.first), (100, rows.many)):
                    if outcome.recall is not None:
                        yield figure_of(f"recall_at_{k}", outcome.recall, name, asked)
        for tried in self.tried:
            said = ", ".join(f"{name}={value}" for name, value in tried.settings.items())
            if said:
                yield figure_of("recall_at_10", tried.recall, said, asked)
        for tenant in self.tenants:
            if tenant.recall is not None:
                yield figure_of("recall_at_10", tenant.recall, f"for {tenant.value}", min(asked, TENANT_QUERIES))
        if self.reached is not None:
            value, low, high = self.reached.share
            yield AnswerFigure("missed", value, low=low, high=high, of=self.reached.asked)

    def content(self) -> dict[str, Any]:
        return {
            "store": self.store.shown,
            "kind": self.store.kind,
            "index": None if self.search is None else self.search.index,
            "metric": None if self.search is None else self.search.metric,
            "settings": self.settings,
            "queries": {"count": self.queries[0], "of": self.queries[1]},
            "search": None if self.plain is None else _searched(self.plain),
            "filtered": None if self.filtered is None else _searched(self.filtered),
            "reached": None if self.reached is None else _reached(self.reached),
            "settings_tried": [
                {"settings": one.settings, "recall_at_10": one.recall.as_json(), "times": one.times}
                for one in self.tried
            ],
            "metrics": None if self.ranked is None else _ranked(self.ranked),
            "where_it_falls": [
                {"by": one.by, "which": one.which, "neighbours": one.neighbours, "found": one.found.as_json()}
                for one in self.thirds
            ],
            "text_copies": None if self.copies is None else self.copies.as_json(),
            "tenants": [
                {
                    "value": tenant.value,
                    "rows": tenant.rows,
                    "recall_at_10": None if tenant.recall is None else tenant.recall.as_json(),
                    "fewer_than_10": tenant.fewer,
                }
                for tenant in self.tenants
            ],
            "kept_by_codes": None if self.codes is None else self.codes.as_json(),
        }


def look_at_search(
    store: Store,
    function: EmbeddingFunction | None = None,
    *,
    filtered: Store | None = None,
    each: TenantFilters | None = None,
    texts: Sequence[str] | None = None,
    settings: Settings | None = None,
    queries: int = QUERIES,
    vectors: np.ndarray | None = None,
    rows: int | None = None,
    target: float = RECALL,
    seed: int = 0,
    progress: Progress = lambda what, done, total: None,
) -> SearchReport:
    """Look at how a store is searched.

    Args:
        function: encodes queries; None: stored vectors ask for their neighbours.
        filtered: the same store, of which a filter keeps some rows.
        each: a field by whose values it is asked one by one.
        texts: queries to be encoded; by default, the first words of stored texts.
        vectors: (Q, D) in place of texts.
        settings: of a query, where the application has others than the store's own.
        queries, rows: how many ask, and how many are asked for by themselves; by default, more of a graph in memory.
        target: the recall that is wanted.

    Raises:
        UsageError: if a setting is none of the store's, or queries need a function.
        CorpusError: if the store cannot be read.
    """
    start = time.monotonic()
    parts = KeptParts()
    search = None if store.search is None else parts.run("its search", store.search)
    present = {} if search is None else search.present_with(settings or {}, store.shown)
    profile = profile_of(store, seed, lambda done: progress("rows read", done, store.rows))
    report = SearchReport(
        store, search, present, target, NO_QUERIES, "" if function is None else function.name, profile
    )
    report = replace(report, copies=text_copies(profile))
    if search is not None and profile.dimensions and search.metric:
        ask = _queries(function, texts, vectors, profile.sample, queries)
        if ask.vectors.shape[1] > profile.dimension:
            ask = ask.cut(profile.dimension)
        rows = rows or (ROWS_OF_GRAPH if search.is_quick_graph else ROWS)
        report = _measure(report, parts, function, filtered, ask, rows, progress)
    findings = list(search_findings(report, parts.failed, filtered is not None))
    if each is not None:
        tenants: tuple[Tenant, ...] = ()
        values = 0
        if search is not None and search.takes_where and report.plain is not None:
            few, (named, values) = ask.first(TENANT_QUERIES), values_of(filtered or store, each.field)
            tenants = tuple(
                tenants_of(
                    named,
                    each.opened,
                    lambda tenant: parts.run("a tenant", lambda: searched(tenant, search, few, present, progress)),
                )
            )
        report = replace(report, tenants=tenants)
        findings += tenant_findings(each.field, tenants, values, target, level_of)
    return replace(report, findings=tuple(findings), seconds=time.monotonic() - start)


def _measure(
    report: SearchReport,
    parts: KeptParts,
    function: EmbeddingFunction | None,
    filtered: Store | None,
    ask: Queries,
    rows: int,
    progress: Progress,
) -> SearchReport:
    store, search, profile, present = report.store, report.search, report.profile, report.settings
    assert search is not None
    assert profile is not None
    sample, dimension = profile.sample, profile.dimension
    if not len(ask) or ask.vectors.shape[1] != dimension:
        return replace(report, queries=(len(ask), f"{ask.vectors.shape[1]} dimensions") if len(ask) else NO_QUERIES)
    report = replace(report, queries=(len(ask), ask.what))
    plain = parts.run("the queries", lambda: searched(store, search, ask, present, progress))
    if plain is None:
        return report
    report = replace(report, plain=plain)
    declared = DECLARED.get((function.similarity or "") if function is not None else "", "")
    report = replace(report, ranked=ranked_by(search.metric, declared, plain.exact.nearest, plain.first.hits))
    if search.takes_where and filtered is not None:
        report = replace(
            report, filtered=parts.run("the filter", lambda: searched(filtered, search, ask, present, progress))
        )
    copies = _copies(profile)
    k_th = plain.exact.nearest[search.metric].scores[:, min(FIRST, plain.rows) - 1]
    if report.recall is not None and report.recall.known < ENOUGH:
        report = replace(report, thirds=tuple(thirds(plain.first, profile.rows, copies > 1, k_th)))
    if not search.is_exact:
        one = sample.at(np.flatnonzero(copies[sample.numbers] < AMONG)[:rows])
        chosen = _owed(store, search, one, report, progress)
        if len(chosen):
            told = parts.run(
                "rows by their own vectors",
                lambda: reached(
                    search, chosen, present, (), lambda done: progress("rows asked for", done, len(chosen))
                ),
            )
            report = replace(report, reached=told)
    # Of queries that no row could answer, no setting finds more.
    if not search.is_exact and report.recall is not None:
        report = replace(report, tried=_settings_tried(report, ask, plain, (), parts, progress))
    if filtered is not None and report.filtered is not None:
        share = report.filtered.first.recall
        if share is not None and level_of(share, report.target) != "ok":
            tried = _settings_tried(report, ask, report.filtered, filtered.where, parts, progress)
            report = replace(report, tried_filtered=tried)
    if function is not None and store.rounded is not None:
        report = replace(report, codes=kept_by_codes(function, sample, search.metric))
    return report


def _settings_tried(
    report: SearchReport, ask: Queries, of: SearchedRows, where: Where, parts: KeptParts, progress: Progress
) -> tuple[TriedSetting, ...]:
    assert report.search is not None
    search = report.search
    found = parts.run(
        "other settings under the filter" if where else "other settings",
        lambda: tried_settings(
            search,
            ask,
            of.first.truth,
            report.settings,
            where,
            report.target,
            lambda done: progress("queries at other settings", done, None),
        ),
    )
    return tuple(found or ())


def _queries(
    function: EmbeddingFunction | None,
    texts: Sequence[str] | None,
    vectors: np.ndarray | None,
    sample: SomeRows,
    most: int,
) -> Queries:
    if vectors is not None:
        return of_vectors(vectors[:most])
    if function is None:
        if texts is not None:
            raise UsageError(
                "Queries are texts, and no function is named that encodes them.",
                next_step="embaudit search STORE FUNCTION --queries FILE",
            )
        return of_rows(sample.at(np.arange(min(most, len(sample)))))
    if texts is not None:
        return of_texts(function, texts[:most], "queries")
    found = beginnings(sample, most)
    if not found:
        return of_rows(sample.at(np.arange(min(most, len(sample)))))
    return of_texts(function, found, "beginnings of stored texts")


def _copies(profile: Profile) -> np.ndarray:
    """(rows,) how many rows have the same vector as each; 0 for those without one."""
    _, places, counts = np.unique(profile.hashes, return_inverse=True, return_counts=True)
    found = np.zeros(profile.rows, dtype=np.int64)
    found[profile.numbers] = counts[places]
    return found


def _owed(store: Store, search: StoreSearch, rows: SomeRows, report: SearchReport, progress: Progress) -> Queries:
    """Rows that exact search finds among the first ten by their own vectors: by an inner product, not all are."""
    if search.metric != "dot" or (report.profile is not None and report.profile.is_normalised):
        return of_rows(rows)
    some = rows.at(np.arange(min(RANKED_ROWS, len(rows))))
    queries = of_rows(some)
    own = np.einsum("nd,nd->n", queries.vectors.astype(np.float64), queries.vectors)[:, None]
    exact = exact_search(
        store, queries.vectors, {}, {"dot": own}, lambda done: progress("exact search: rows", done, store.rows)
    )
    return of_rows(some.at(np.flatnonzero(exact.above["dot"][:, 0] < AMONG)))


def _searched(one: SearchedRows) -> dict[str, Any]:
    recalls = {name: outcome.recall for name, outcome in (("recall_at_10", one.first), ("recall_at_100", one.many))}
    return {
        "where": one.where,
        "rows": one.rows,
        **{name: None if share is None else share.as_json() for name, share in recalls.items()},
        "fewer_than_10": one.first.fewer,
        "fewer_than_100": one.many.fewer,
        "with_repeated_rows": one.repeated,
        "ids_of_no_row": list(one.gone[:100]),
    }


def _reached(one: Reached) -> dict[str, Any]:
    share, lost = one.share, one.lost_share
    return {
        "asked": one.asked,
        "missed": {"value": share[0], "low": share[1], "high": share[2], "ids": list(map(str, one.missed[:100]))},
        "unreachable": {
            "value": lost[0],
            "low": lost[1],
            "high": lost[2],
            "ids": list(map(str, one.unreachable[:100])),
        },
        "widest": one.widest,
    }


def _ranked(one: RankedBy) -> dict[str, Any]:
    return {
        "store": one.store,
        "declared": one.declared,
        "changed_of_10": {metric: share.as_json() for metric, share in one.changed.items()},
        "scores": one.scores,
        "lowest": one.lowest,
        "highest": one.highest,
    }
