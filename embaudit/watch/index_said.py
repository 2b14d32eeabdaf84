"""What a look at an index says to whoever reads it the next morning: what came, what is wrong with it, what to type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from shlex import quote

from embaudit.watch.index_function import ActivePassport
from embaudit.watch.index_look import IndexInspection
from embaudit.watch.index_rows import WhatIsNew
from embaudit.watch.index_whole import EMPTY, GONE, ROWS_LOST, UNREAD
from embaudit.watch.watch_list import IndexEntry
from embaudit.words.errors import EmbauditError
from embaudit.words.masking import masked, without_credentials

# What ends a problem of the whole index.
UNTIL = {
    GONE: "it is there",
    EMPTY: "it has rows",
    ROWS_LOST: "the rows are back",
    UNREAD: "it can be read",
    "golden": "the golden queries are found",
}
# As in ``CheckedIndex.problems``.
Problem = Mapping[str, str]


def said_of_look(
    new: WhatIsNew,
    old: IndexInspection | None,
    came: IndexInspection | None,
    problems: Sequence[Problem],
    key: str,
    since: datetime | None,
    rest: Sequence[str] = (),
) -> str:
    """What came, and what is open.

    Args:
        key: of this look.
        since: when the look before was; None in a first one.
        rest: what else there is to say: of golden queries, of what was accepted, what to type.
    """
    parts = [_what_came(new, since)]
    found = [problem["said"] for problem in problems if problem["key"] == key]
    if not any(problem["name"] == UNREAD for problem in problems):
        parts += found or [whose(old, came, is_first=since is None)]
    else:
        parts += found
    parts += _still(problem for problem in problems if problem["key"] != key)
    return " ".join(part for part in (*parts, *rest) if part)


def whose(old: IndexInspection | None, came: IndexInspection | None, *, is_first: bool = False) -> str:
    """Whose the rows are in which nothing was found."""
    each = ((came, "new rows"), (old, "rows" if is_first else "old rows"))
    return " ".join(_whose(looked, what) for looked, what in each if looked is not None)


def said_of_failure(error: EmbauditError, problems: Sequence[Problem], since: datetime | None, advice: str) -> str:
    """Why it was not looked at, and what was kept."""
    kept = "" if since is None else f"The next night tells new rows against {_time(since)}."
    parts = [error.happened, error.kept, kept, *_still(problems), advice]
    return " ".join(part for part in parts if part)


def said_of_another(passport: ActivePassport, entry: IndexEntry, problems: Sequence[Problem]) -> str:
    """The function is not what it was: nothing is said of rows."""
    function = masked(entry.function)
    parts = [
        f"{function} is no longer the function of its passport {passport.path}: {passport.otherwise}",
        "No row was compared with it; the next night goes on from what was kept.",
        *_still(problems),
        f"See how it differs: embaudit verify {quote(str(passport.path))} {quote(function)}",
    ]
    return " ".join(parts)


def command(entry: IndexEntry) -> str:
    """What to type to see every row."""
    options = {
        "--from": entry.part,
        "--vector": entry.vector,
        "--text": entry.text,
        "--id": entry.id,
        "--texts": entry.texts,
        "--numbers": entry.numbers,
    }
    words = ["embaudit", "vectors", without_credentials(entry.store), entry.function]
    words += [word for name, value in options.items() if value is not None for word in (name, str(value))]
    words += [word for name, value in entry.where.items() for word in ("--where", f"{name}={value}")]
    return masked(" ".join(map(quote, [*words, "--all", "--table", "rows.parquet"])))


def said_of_copies(added: int, repeats: int) -> str:
    """That most rows of a night repeat others: they were added anew; empty if they do not."""
    if repeats <= added / 2:
        return ""
    many = f"{repeats:,} of {added:,} rows that were added" if added > 1 else "The row that was added"
    verb = "repeat" if added > 1 else "repeats"
    return (
        f"{many} {verb} the text and the vector of a row that was there: is everything added anew at each start? "
        "Give each text an id of its own, such as its hash, and add it by upsert."
    )


def _what_came(new: WhatIsNew, since: datetime | None) -> str:
    if since is None:
        return f"First look: {len(new.came):,} rows."
    counts = {"added": new.added, "overwritten": new.overwritten, "removed": new.removed}
    told = [f"{count:,} {what}" for what, count in counts.items() if count]
    return f"Rows since {_time(since)}: {', '.join(told)}." if told else f"No row is new since {_time(since)}."


def _whose(looked: IndexInspection, what: str) -> str:
    """What is said of rows in which nothing was found."""
    share = looked.share
    if share is None:
        why = next((one.sentence for one in looked.report.findings if one.level == "not measured"), "")
        return f"Cannot tell whose the {what} are. {why}".rstrip()
    is_all = looked.encoded >= looked.rows
    bound = "" if is_all or share[2] == 0 else f" (at most {share[2]:.2%} of all {looked.rows:,} are not)"
    which = f"All {looked.encoded:,} {what}" if is_all else f"Of the {what}, {looked.encoded:,} drawn at random"
    return f"{which} are the {looked.kind}'s{bound}."


def _still(problems: Sequence[Problem] | Iterator[Problem]) -> list[str]:
    return [f"Open since {problem['night']}: {problem['said']}" for problem in problems]


def what_to_do(entry: IndexEntry, problems: Sequence[Problem]) -> str:
    """What ends it, and what to type; empty if nothing is open."""
    names = {problem["name"] for problem in problems}
    until = [said for name, said in UNTIL.items() if name in names]
    if names - set(UNTIL):
        until.append("these rows are encoded again or gone")
    if not until:
        return ""
    accept = f"embaudit accept {quote(entry.name)} --reason TEXT"
    see = f" To see each of them: {command(entry)}" if names - set(UNTIL) else ""
    return f"It is green when {', '.join(until)}, or it is accepted ({accept}).{see}"


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
