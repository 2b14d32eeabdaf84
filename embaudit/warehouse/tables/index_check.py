"""What a watch finds in indexes."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from embaudit.declared.table import SHARE, Interval, Json, Row, Series, column
from embaudit.declared.table import rule as row_rule

# What a look at an index ends with.
CheckVerdict = Literal[
    "gone",
    "empty",
    "rows lost",
    "wholly its own",
    "not wholly its own",
    "golden queries lost",
    "another function",
    "could not be told",
]
EXACT = Interval("exact, hypergeometric, of a sample without replacement")


class IndexCheckRow(Row, table="index_check", key=("check_key",), scope="content"):
    """What was in each watched index, each time that a watch looked at it."""

    check_key: str = column("Key of index and time.")
    store: str = column("Where the vectors are, as watched, without credentials, and which rows of it.")
    asked: datetime = column("When it was looked at.")
    since: datetime | None = column("The look that new rows are told against; null: a first one, all rows are old.")
    function: str = column("What should have built it, as watched.")
    checkpoint_id: str | None = column("Id of that content; null: unknown, or it was not opened.")
    passport: str | None = column("File of the passport that was in force for it; null: there is none.")
    passport_id: str | None = column("Id of the checkpoint in that passport, or of its vectors.")
    verdict: CheckVerdict = column(
        "Outcome, what earlier nights left open included; another function: it is no longer its passport's."
    )
    line: str = column("What came, what is wrong with it and what to type, in sentences.")
    rows: int | None = column("All rows; null: it was not looked at, and so in the columns after it.", ge=0)
    most_rows: int | None = column("The most rows that it had, since somebody accepted fewer; null: unknown.", ge=0)
    added: int | None = column("Rows whose id was not there.", ge=0)
    overwritten: int | None = column("Rows whose id was there with another vector or text.", ge=0)
    removed: int | None = column("Ids that are gone.", ge=0)
    new_encoded: int | None = column("Rows added or overwritten that were encoded again.", at_least="new_foreign")
    new_foreign: int | None = column("Of these, rows that the function did not build.", ge=0)
    new_share: float | None = column("Share of these; null: none was encoded.", within=SHARE, interval=EXACT)
    old_encoded: int | None = column("Rows that were there, and were encoded again.", at_least="old_foreign")
    old_foreign: int | None = column("Of these, rows that the function did not build.", ge=0)
    old_share: float | None = column("Share of these; null: none was encoded.", within=SHARE, interval=EXACT)
    zeros: int | None = column(
        "New rows whose vector is zeros only; of all rows in a first look, as what follows.", ge=0
    )
    not_finite: int | None = column("New rows whose vector holds NaN or infinity.", ge=0)
    without_vector: int | None = column("New rows that have no vector.", ge=0)
    copies: int | None = column("New rows with the vector and the text of another row of the index.", ge=0)
    dimension: int | None = column("Numbers of most vectors that were there.", ge=0)
    other_dimensions: int | None = column("New rows whose vector has another number of numbers.", ge=0)
    golden_queries: int | None = column(
        "Golden queries that were asked; null: there are none.", at_least="golden_found"
    )
    golden_found: int | None = column("Of these, found among the results that are shown.", ge=0)
    golden_share: float | None = column(
        "Share of these.", within=SHARE, interval=Interval("exact (Clopper and Pearson)")
    )
    golden_lost: Json = column("Those that are not found: query, expected, where lost, why, and what mends it.")
    open_rows: Json = column("Rows of what is open, as far as they are known: id, the night they came in, name.")
    problems: Json = column("What is open: key of the check that found it first, name, night, sentence.")
    accepted: Json = column("What somebody accepted of rows that are still there, in sentences.")
    seconds: float = column("How long it took.", ge=0)

    @row_rule
    def wholly_its_own_has_nothing_open(verdict: Series, problems: Series) -> Series:
        """Nothing is open where the index is wholly its function's."""
        return (verdict != "wholly its own") | (problems == "[]")

    @row_rule
    def a_first_look_has_no_new_rows(since: Series, added: Series, overwritten: Series) -> Series:
        """Rows are new since an earlier look."""
        return since.notna() | ((added.fillna(0) == 0) & (overwritten.fillna(0) == 0))
