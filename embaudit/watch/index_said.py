"""What a look at an index says to whoever reads it the next morning: what came, what is wrong with it, what to type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from shlex import quote

from embaudit.errors import EmbauditError
from embaudit.masking import masked, without_credentials
from embaudit.watch.index_function import InForce
from embaudit.watch.index_look import LookedAt
from embaudit.watch.index_rows import WhatIsNew
from embaudit.watch.watch_list import IndexEntry

# As in ``CheckedIndex.problems``.
Problem = Mapping[str, str]


def said_of_look(
    entry: IndexEntry,
    new: WhatIsNew,
    old: LookedAt | None,
    came: LookedAt | None,
    problems: Sequence[Problem],
    key: str,
    since: datetime | None,
    of_golden: str = "",
) -> str:
    """What came, and what is open.

    Args:
        key: of this look.
        since: when the look before was; None in a first one.
        of_golden: how many golden queries are found; empty without any.
    """
    parts = [_what_came(new, since)]
    found = [problem["said"] for problem in problems if problem["key"] == key]
    if found:
        parts += found
    else:
        each = ((came, "new rows"), (old, "rows" if since is None else "old rows"))
        parts += [_whose(looked, what) for looked, what in each if looked is not None]
    parts += [of_golden] if of_golden else []
    parts += _still(problem for problem in problems if problem["key"] != key)
    return " ".join([*parts, *_what_to_do(entry, problems)])


def said_of_failure(
    error: EmbauditError, entry: IndexEntry, problems: Sequence[Problem], since: datetime | None
) -> str:
    """Why it was not looked at, and what was kept."""
    kept = "" if since is None else f"The next night tells new rows against {_time(since)}."
    parts = [error.happened, error.kept, kept, *_still(problems), error.next_step]
    return " ".join(part for part in parts if part)


def said_of_another(passport: InForce, entry: IndexEntry, problems: Sequence[Problem]) -> str:
    """The function is not what it was: nothing is said of rows."""
    function = masked(entry.function)
    parts = [
        f"{function} is no longer the function of its passport {passport.path}: {passport.otherwise}",
        "No row was held against it; the next night goes on from what was kept.",
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
    words = ["embaudit", "vectors", entry.function, without_credentials(entry.store)]
    words += [word for name, value in options.items() if value is not None for word in (name, str(value))]
    words += [word for name, value in entry.where.items() for word in ("--where", f"{name}={value}")]
    return masked(" ".join(map(quote, [*words, "--all", "--table", "rows.parquet"])))


def _what_came(new: WhatIsNew, since: datetime | None) -> str:
    if since is None:
        return f"First look: {len(new.came):,} rows."
    counts = {"added": new.added, "overwritten": new.overwritten, "removed": new.removed}
    told = [f"{count:,} {what}" for what, count in counts.items() if count]
    return f"Rows since {_time(since)}: {', '.join(told)}." if told else f"No row is new since {_time(since)}."


def _whose(looked: LookedAt, what: str) -> str:
    """What is said of rows in which nothing was found."""
    share = looked.share
    if share is None:
        why = next((one.sentence for one in looked.report.findings if one.level == "not measured"), "")
        return f"Whose the {what} are could not be told. {why}".rstrip()
    is_all = looked.encoded >= looked.rows
    bound = "" if is_all or share[2] == 0 else f" (at most {share[2]:.2%} of all {looked.rows:,} are not)"
    which = f"All {looked.encoded:,} {what}" if is_all else f"Of the {what}, {looked.encoded:,} drawn at random"
    return f"{which} are the {looked.kind}'s{bound}."


def _still(problems: Sequence[Problem] | Iterator[Problem]) -> list[str]:
    return [f"Open since {problem['night']}: {problem['said']}" for problem in problems]


def _what_to_do(entry: IndexEntry, problems: Sequence[Problem]) -> list[str]:
    if not problems:
        return []
    accept = f"embaudit accept {quote(entry.name)} --reason TEXT"
    until = f"It is green when these rows are encoded again, gone, or accepted ({accept})."
    return [until, f"To see each of them: {command(entry)}"]


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
