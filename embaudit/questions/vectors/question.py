"""Are stored vectors sound, and whose are they? What ``embaudit vectors`` and ``embaudit.vectors`` ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, model_validator

from embaudit.checkpoint.loading import CheckpointOptions
from embaudit.declared.option import Option
from embaudit.embedders.call_options import CacheOptions, RoleOptions
from embaudit.questions.question import (
    QUIET,
    ExplanationPart,
    Function,
    PathName,
    Progress,
    Question,
    SeedPart,
    SentTexts,
    StorePart,
    is_known_store,
)
from embaudit.stores.place import LARGE, SeveralParts, SeveralVectors
from embaudit.words.errors import UsageError

if TYPE_CHECKING:
    from embaudit.declared.rule import Finding
    from embaudit.embedders.function import EmbeddingFunction
    from embaudit.questions.report import Report
    from embaudit.questions.vectors.report import StoredReport
    from embaudit.stores.store import Store


class VectorsQuestion(CheckpointOptions, RoleOptions, CacheOptions, ExplanationPart, SeedPart, StorePart, Question):
    """Are the vectors in STORE sound, and did FUNCTION build them: a checkpoint, an endpoint or a Python object?

    STORE is where the vectors are: an export (Parquet, Arrow, CSV, JSON, NumPy …), a database's file, the folder of a
    vector store, or an address; docs/vectors.md lists them. It is only read; of several collections, each is looked at
    unless --from names one. Without FUNCTION, the vectors alone are looked at. Exit code 0 if nothing is wrong, 1 if
    the index is not sound or not wholly the function's, 2 if that could not be told.
    """

    asks: ClassVar = "vectors"

    function: Function = Field(None, kw_only=False)
    rows: int = Field(1_000, ge=1, le=20_000, description="How many rows, drawn at random, are encoded again.")
    also: Annotated[Sequence[Any], Option(metavar="FUNCTION", holds="function")] = Field(
        (), description="Another that may have built rows."
    )
    every_row: Annotated[bool, Option("all")] = Field(False, description="Encode every row again.")
    table: PathName | None = Field(
        None,
        description="Write the rows that FUNCTION did not build to a .csv or .parquet file; implies --all.",
    )
    whole: bool = Field(
        False,
        description="Read all rows of Parquet files with more than ten million; by default, row groups drawn at "
        "random.",
    )

    lost: Annotated[float, Option(metavar="SHARE")] = Field(
        0.1,
        gt=0,
        le=1,
        description="Of the most rows that earlier answers found, the share which, once gone, is a problem.",
    )
    since_last: bool = Field(
        False,
        description="Encode rows that came since this was last asked by themselves, beside a sample of the others; "
        "what is wrong with either stays open until it is mended or accepted.",
    )
    expected: Annotated[PathName | None, Option(metavar="LIST", is_file=True, may_be_folder=True)] = Field(
        None,
        description="Ids that should be there (a line each, CSV or JSON lines with id, and text if there is one), or a "
        "folder of documents: what is absent, what nobody expects, which texts have changed.",
    )
    fewest_rows: Annotated[int | None, Option(metavar="N")] = Field(
        None, ge=1, description="Rows that there should be at least: fewer are a problem."
    )

    @model_validator(mode="before")
    @classmethod
    def _in_the_old_order(cls, asked: Any) -> Any:
        """A function that is given before a store is known by what both are."""
        if not isinstance(asked, dict):
            return asked
        if isinstance(also := asked.get("also"), str | Path):
            asked = {**asked, "also": [also]}
        store, function = asked.get("store"), asked.get("function")
        if isinstance(function, str | Path) and not is_known_store(store) and is_known_store(function):
            return {**asked, "store": function, "function": store}
        return asked

    @property
    def encodes_all(self) -> bool:
        return self.every_row or self.table is not None

    @property
    def counts_all(self) -> bool:
        """Whether it is asked for what may be in any row, so that none may be left out."""
        return self.expected is not None or self.fewest_rows is not None or self.since_last

    @property
    def is_live(self) -> bool:
        # A table is asked for to be written; at every look, other rows are encoded again.
        return self.table is not None or self.since_last

    @property
    def functions(self) -> list[Any]:
        return [] if self.function is None else [self.function, *self.also]

    def texts_sent(self) -> Iterator[SentTexts]:
        yield SentTexts(self.functions, f"those of {self.rows:,} rows", "your texts would leave this one")

    def also_read(self) -> Iterator[Path]:
        from embaudit.questions.vectors.builder import own_folder

        yield own_folder()

    def answer(self, progress: Progress = QUIET) -> Report:
        from embaudit.embedders.opened import is_checkpoint
        from embaudit.questions.vectors.opened import COLUMNS, look_at_each

        if self.function is None and (self.encodes_all or self.also or self.since_last):
            raise UsageError(
                "--all, --table, --also and --since-last need a function to compare with.",
                next_step="embaudit vectors STORE FUNCTION",
            )
        if self.encodes_all and self.since_last:
            raise UsageError("--since-last encodes samples, and --all every row.", next_step="Ask one after the other.")
        try:
            return self._of_part(self.from_table, progress)
        except (SeveralParts, SeveralVectors) as several:
            # Each asks for as many texts as one: where these cost money, it is the user's to say.
            # And of several, nobody knows which should hold what is expected.
            if self.table is not None or self.counts_all or not all(map(is_checkpoint, self.functions)):
                raise
            if isinstance(several, SeveralParts):
                return look_at_each(str(self.store), several.names, lambda part: self._of_part(part, progress))
            of_column = partial(self._of_part, self.from_table, progress)
            return look_at_each(str(self.store), several.names, of_column, COLUMNS)

    def _of_part(self, part: str | None, progress: Progress, vector: str | None = None) -> StoredReport:
        """Look at one collection, or at one of its columns of vectors; against the function, if one is named."""
        from embaudit.embedders.kept import FOLDER
        from embaudit.embedders.opened import is_checkpoint, name_of, open_function, open_kept
        from embaudit.questions.vectors.every_row import check_table, find_foreign
        from embaudit.questions.vectors.opened import opened_first, opened_for
        from embaudit.questions.vectors.report import look_at
        from embaudit.steps.elsewhere import require_runner
        from embaudit.stores.opened import open_store
        from embaudit.system.settings import Settings

        table = None if self.table is None else Path(self.table)
        if table is not None:
            # Before hours of encoding.
            check_table(table)
        rows = replace(
            self.read_options(
                allow_pickle=self.allow_pickle,
                most=None if self.whole or self.encodes_all or self.counts_all else LARGE,
                seed=self.seed,
            ),
            part=part,
            vector=vector or self.vector,
        )
        named = str(self.store)
        # A place that is wrong is told before a function is opened, which may take a while.
        if self.function is None:
            store = open_store(named, rows)
            return self._completed(look_at(store, seed=self.seed, progress=progress.done), store)
        first = opened_first(named, rows)
        options, given = self.load_options, self.functions
        # What an endpoint gave before is no proof of what it gives now.
        calls = (self.model_copy(update={"fresh": True}) if self.since_last else self).calls(*given)
        names = _told_apart([name_of(function) for function in given])
        if self.encodes_all and is_checkpoint(self.function):
            require_runner()
        self._require_readable()
        with ExitStack() as stack:

            def load(name: str) -> EmbeddingFunction:
                if name.startswith("dtype:"):
                    return open_function(self.function, replace(options, dtype=name.removeprefix("dtype:")))
                place = names.index(name)
                return stack.enter_context(open_kept(given[place], options, calls[place]))

            opened = stack.enter_context(open_kept(self.function, options, calls[0]))
            store = opened_for(opened, named, rows, first)
            if self.since_last:
                from embaudit.questions.vectors.since.look import look_since, memory_of
                from embaudit.questions.vectors.since.rows import FOLDER as SEEN

                memory = memory_of(Settings().home.expanduser().absolute() / SEEN, named, rows)
                since = look_since(store, opened, memory, rows=self.rows, also=names[1:], load=load)
                return self._completed(since, store)
            report = look_at(
                store,
                opened,
                rows=self.rows,
                seed=self.seed,
                also=names[1:],
                load=load,
                every_row=(
                    lambda store, against, function: find_foreign(
                        store,
                        function,
                        against,
                        table=table,
                        total=against.population,
                        kept_in=Settings().home / FOLDER,
                        progress=progress.done,
                    )
                )
                if self.encodes_all
                else None,
                with_explanation=self.with_explanation,
                progress=progress.done,
                say=progress.say,
            )
            return self._completed(report, store)

    def _completed(self, report: StoredReport, store: Store) -> StoredReport:
        """With what the index lacks of what it should hold, if that was said."""
        from embaudit.questions.vectors.expected import (
            compare_expected,
            fewest_rows_finding,
            read_expected,
            without_ids,
        )

        more: list[Finding] = []
        found = None
        if self.fewest_rows is not None:
            held = report.alone.profile.rows if report.since is None else len(report.since.marks)
            more.append(fewest_rows_finding(held, self.fewest_rows))
        if self.expected is not None:
            found = compare_expected(store, read_expected(Path(self.expected)))
            more += [without_ids(store)] if found is None else found.findings()
        return replace(report, findings=(*report.findings, *more), completeness=found)

    def _require_readable(self) -> None:
        """A name that is wrong is told before the index is read, which may take minutes."""
        from embaudit.checkpoint import resolve
        from embaudit.checkpoint.load import describe
        from embaudit.checkpoint.modules import NoTransformer
        from embaudit.embedders.opened import is_checkpoint

        for other in filter(is_checkpoint, self.also):
            resolved = resolve(str(other), allow_pickle=self.allow_pickle, trust_remote_code=self.trust_remote_code)
            # What is no transformer may be read by sentence-transformers.
            with suppress(NoTransformer):
                describe(resolved, self.load_options)


def _told_apart(names: Sequence[str]) -> list[str]:
    """Names of functions, with a number where two Python objects have one name."""
    return [
        f"{name} ({names[:place].count(name) + 1})" if name in names[:place] else name
        for place, name in enumerate(names)
    ]
