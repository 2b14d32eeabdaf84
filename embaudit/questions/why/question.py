"""Why was it not found? What ``embaudit why`` and ``embaudit.why`` ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from embaudit.checkpoint.loading import CheckpointOptions
from embaudit.declared.option import Option
from embaudit.embedders.call_options import CacheOptions, RoleOptions
from embaudit.questions.question import (
    QUIET,
    Function,
    PathName,
    Progress,
    QuerySettingsPart,
    Question,
    SeedPart,
    SentTexts,
    StorePart,
)
from embaudit.words.errors import UsageError

if TYPE_CHECKING:
    from embaudit.corpora.golden import GoldenQuery
    from embaudit.embedders.function import EmbeddingFunction
    from embaudit.questions.why.report import WhyReport


class WhyQuestion(CheckpointOptions, RoleOptions, CacheOptions, QuerySettingsPart, SeedPart, StorePart, Question):
    """Why does a search in STORE, with queries that FUNCTION encodes, not find what it should?

    The walk from the query to the place where it was lost: is the row there, was its vector built by FUNCTION from its
    text, how much of that is read, where does exact search rank it and who stands above, does the store's own search
    reach it, would words find it, or another way to ask. What would mend it is tried, without writing to the store: the
    cause is confirmed, or the next one is taken. With --unexpected: why did a row come up? --json says where in one
    word: absent, vector, text, function, search, filter, cut-off, or found. Exit code 0 if everything is found, 1 if
    something is lost or came up, 2 if that could not be told.
    """

    asks: ClassVar = "why"

    function: Function = Field(kw_only=False)
    query: Annotated[str | Sequence[str] | Mapping[str, str | Sequence[str]] | None, Option(metavar="TEXT")] = Field(
        None,
        kw_only=False,
        description="What was asked; or queries with what each should find.",
    )
    expect: Annotated[str | Sequence[str] | None, Option(metavar="ID")] = Field(
        None, kw_only=False, description="The id, or the text, that it should find; one a query."
    )
    unexpected: Annotated[str | Sequence[str] | None, Option(metavar="ID")] = Field(
        None, description="In place of --expect: the id, or the text, that came up and should not. Why did it?"
    )
    golden: Annotated[PathName | None, Option(is_file=True)] = Field(
        None, description="A file of both: CSV or JSON lines with query and expect."
    )
    k: int = Field(10, ge=1, le=1_000, description="Results that are shown.")
    min_score: Annotated[float | None, Option(metavar="COSINE")] = Field(
        None,
        allow_inf_nan=False,
        description="The cosine below which the application shows nothing; of LangChain's FAISS by distance, its "
        "relevance.",
    )
    tokens: Annotated[PathName | None, Option(is_file=True)] = Field(
        None, description="Severe tokens, as `embaudit filter` lists them: what they do in a query and its text."
    )
    also: Annotated[Any, Option(metavar="FUNCTION", holds="function")] = Field(
        None, description="Another function: where it would put what this one loses."
    )
    stages: Annotated[Any, Option(metavar="OBJECT", holds="object")] = Field(
        None,
        description="The application, a Python object or its name (python:MODULE:NAME), that gives for a query the ids "
        "after each of its stages. Which of them loses the row, and what stands there instead?",
    )

    @property
    def cases(self) -> list[GoldenQuery]:
        """What was asked for, from a file and besides."""
        from embaudit.corpora.golden import GoldenQuery, read_golden

        if self.unexpected is not None and (self.expect is not None or self.golden is not None):
            raise UsageError(
                "--unexpected asks why a row came up, --expect and --golden why one did not.",
                next_step="Ask one after the other.",
            )
        if self.unexpected is not None and self.stages is not None:
            raise UsageError(
                "--stages says which stage loses a row, --unexpected asks why one came up.",
                next_step="Ask one after the other.",
            )
        found = [] if self.golden is None else read_golden(Path(self.golden))
        for query, answers in self._pairs().items():
            if not answers:
                raise UsageError(f"It is not said what {query!r} should find.", next_step='--expect "ID or text"')
            found.append(GoldenQuery(query, (answers,) if isinstance(answers, str) else tuple(map(str, answers))))
        if not found:
            raise UsageError("There is no query.", next_step='--query "…" --expect ID; or --golden FILE')
        return found

    def _pairs(self) -> Mapping[str, str | Sequence[str]]:
        named = self.expect if self.unexpected is None else self.unexpected
        option = "expect" if self.unexpected is None else "unexpected"
        if self.query is None and named is None:
            return {}
        if isinstance(self.query, Mapping):
            return self.query
        if isinstance(self.query, str):
            if named is None:
                raise UsageError("It is not said what the query should find.", next_step='--expect "ID or text"')
            return {self.query: named}
        queries = self.query or ()
        rows = [named] if isinstance(named, str) else named or ()
        if len(queries) != len(rows):
            raise UsageError(
                f"--query was given {len(queries)} times and --{option} {len(rows)}.",
                next_step=f"Give each --query its --{option}, in the same order.",
            )
        pairs: dict[str, list[str]] = {}
        for query, row in zip(queries, rows, strict=True):
            pairs.setdefault(query, []).append(row)
        return pairs

    @property
    def is_live(self) -> bool:
        # An application's own code may do something else tonight.
        return self.stages is not None

    def texts_sent(self) -> Iterator[SentTexts]:
        warning = "they would leave this one"
        yield SentTexts([self.function], f"{len(self.cases):,} queries, and about 100 stored texts", warning)
        if self.also is not None:
            yield SentTexts([self.also], "the queries, and up to 2,000 stored texts", warning)

    def answer(self, progress: Progress = QUIET) -> WhyReport:
        from embaudit.embedders.opened import open_kept
        from embaudit.questions.vectors.opened import opened_first, with_filter
        from embaudit.questions.why.application import open_application
        from embaudit.questions.why.case import ShownResults
        from embaudit.questions.why.report import look_into
        from embaudit.questions.why.rows import OtherPlaces

        cases, named = self.cases, str(self.store)
        application = None if self.stages is None else open_application(self.stages)
        rows = self.read_options(allow_pickle=self.allow_pickle)
        calls = self.calls(self.function, *([] if self.also is None else [self.also]))
        first = opened_first(named, replace(rows, where=()))
        with ExitStack() as stack:
            function = stack.enter_context(open_kept(self.function, self.load_options, calls[0]))
            other = None
            if self.also is not None:
                other = stack.enter_context(open_kept(self.also, self.load_options, calls[-1]))
            store, filtered = with_filter(function, named, rows, first)
            return look_into(
                store,
                function,
                cases,
                filtered=filtered,
                settings=self.query_settings,
                cut_off=ShownResults(self.k, self.min_score),
                severe=() if self.tokens is None else _severe_ids(Path(self.tokens), function),
                also=other,
                application=application,
                places=OtherPlaces(named, rows),
                is_unexpected=self.unexpected is not None,
                seed=self.seed,
                progress=progress.done,
            )


def _severe_ids(tokens: Path, function: EmbeddingFunction) -> set[int]:
    """Ids of a list of severe tokens, which must be of this function's tokenizer.

    Raises:
        UsageError: if it is of another, or nobody sees the function's tokens.
    """
    from embaudit.remedies.screening import read_token_list

    listed = read_token_list(tokens)
    checkpoint = function.checkpoint
    if checkpoint is None or checkpoint.identity.tokenizer_sha256 != listed.tokenizer_sha256:
        raise UsageError(
            f"{tokens} lists tokens of {listed.checkpoint}, whose tokenizer is not that of {function.name}.",
            next_step="Make one of its own: embaudit filter CHECKPOINT --out FILE",
        )
    return set(listed.losses)
