"""Whatever a test makes of findings, tables and errors has the form that people, pages and tables rely on."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from math import isclose
from pathlib import Path
from types import FrameType
from typing import Any

from embaudit.declared.document import Table
from embaudit.declared.rule import Finding, Rule
from embaudit.steps.staging.files import is_remote
from embaudit.steps.step import Outputs, TableOf, table_name
from embaudit.words.errors import (
    CheckFailed,
    CorpusError,
    EmbauditError,
    HubUnreachable,
    MeasureError,
    StorageError,
    WarehouseError,
)

# A verdict on other findings, and a note on how a store is read.
SUMS_UP = ("verdict", "how_it_is_read")
# What nobody can give: a look inside a service, a base of the same architecture, mean pooling, states between layers,
# more rows of a vocabulary, a limit that can be tried in seconds, larger layers, more sentences in twelve languages.
CANNOT_BE_GIVEN = ("inside", "weights_changed", "thrown_away", "lost_in_layer", "vocabulary_fit", "tail")
CANNOT_BE_GIVEN += ("untrained_layers", "retrieval")
# What sums up is made of other findings, and what is read back was made before.
WITHOUT_RULE = ("embaudit.questions.report", "embaudit.questions.why.report", "embaudit.api.reading")
SECONDS = {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86400}
# By rule and level, the findings that this process made of what it measured; and the columns that it filled, in which
# some row holds more than the nothing of its kind.
MADE: set[str] = set()
NOTHING = (None, 0, "", False)
_plain_init = Finding.__init__
_plain_table = Table.__init__
_plain_error = EmbauditError.__init__
_plain_stage = Outputs._stage
# An error about a file says which: one of those that are at hand where it is made, a hub's card aside.
OF_FILES = (CorpusError, StorageError, WarehouseError)
READERS = ("embaudit.corpora.", "embaudit.stores.", "embaudit.questions.passport.")
UNNAMED = re.compile(r"--|A limit of |Unknown corpus |That is the warehouse itself|The warehouse has no |.*\\x00")
NONE = re.compile(r"^None[,:]|(?<=[^.:] )(?<!')(?<!gives )(?<!but )None\b(?! of\b)(?!')")
# Where something is undefined on an input, who asked for it knows what to do; the others say it themselves.
WITHOUT_STEP = (MeasureError, CheckFailed, HubUnreachable)


def _is_of_a_report(made_by: FrameType) -> bool:
    """Whether the package makes it of what it measured, rather than a test, or a page of findings of others."""
    module = made_by.f_globals["__name__"]
    return module.startswith("embaudit.") and not module.startswith(("embaudit.pages.", "embaudit.declared.rule"))


@cache
def _is_declared(name: str) -> bool:
    """Whether it is the name of a rule that the documentation has a row of."""
    # Only now: it imports every measure and question.
    from embaudit.cli.reference import catalogue

    rules = {rule.name for rules in catalogue().values() for _, rule in rules}
    return any(re.fullmatch(re.sub(r"{\w+}", r"\\w+", rule), name) for rule in rules)


def is_told(number: float, sentence: str) -> bool:
    """Whether a number stands in a sentence, in one of the forms that numbers have: .52, 52 %, 13 of 25, 3 min."""
    # As papers write them: .52 and −.52.
    told = re.sub(r"(?<![\d.])(?=\.\d)", "0", sentence.replace(",", "").replace("−", "-"))
    shares = (number, -number, 100 * number, 1 - number, 100 - 100 * number)
    forms = {f"{share:.{digits}f}" for share in shares for digits in range(6)}
    forms |= {f"{number:g}", f"{number:.1e}", f"{number:.2g}", f"{number:.3g}"}
    if number in (0, 1) or any(re.search(rf"(?<![\d.]){re.escape(form)}(?!\d|\.\d)", told) for form in forms):
        return True
    counts = [(int(some), int(every)) for some, every in re.findall(r"(\d+) of (?:its |the )?(\d+)", told)]
    if any(every and isclose(some / every, share, abs_tol=1e-9) for some, every in counts for share in shares[::3]):
        return True
    times = [(float(time), SECONDS[unit]) for time, unit in re.findall(r"(\d+(?:\.\d+)?) (ms|s|min|h|d)\b", told)]
    return any(abs(time * unit - number) <= unit / 2 for time, unit in times)


def pytest_sessionfinish() -> None:
    """With EMBAUDIT_RULES_MADE=FILE, leave what was made there, for ``python tests/report_form.py FILE`` (.ci/run)."""
    if path := os.environ.get("EMBAUDIT_RULES_MADE"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.writelines(f"{one}\n" for one in sorted(MADE))


def _checked_init(self: Finding, *given: Any, **named: Any) -> None:
    _plain_init(self, *given, **named)
    assert self.sentence, f"no sentence: {self}"
    made_by = sys._getframe(1)
    while made_by.f_globals["__name__"] in ("dataclasses", Rule.__module__) and made_by.f_back is not None:
        made_by = made_by.f_back
    if _is_of_a_report(made_by):
        is_of_other_findings = made_by.f_globals["__name__"] in WITHOUT_RULE
        assert is_of_other_findings or _is_declared(self.name), f"no rule's name: {self}"
    if _is_of_a_report(made_by):
        MADE.add(f"{self.name} {self.level}")
        untold = [
            one for one in (self.value, self.low, self.high) if one is not None and not is_told(one, self.sentence)
        ]
        assert not untold, f"numbers that the sentence does not tell: {untold}: {self}"
    if _is_of_a_report(sys._getframe(1)):
        module = sys._getframe(1).f_globals["__name__"]
        assert module == Rule.__module__ or module in WITHOUT_RULE, f"made by no rule: {self}"
        # What is wrong is said with what to do about it, and what could not be told with what to give.
        is_open = self.level != "ok" and self.name not in SUMS_UP
        is_known = self.level == "not measured" and self.name in CANNOT_BE_GIVEN
        assert self.advice or is_known or not is_open, f"nothing to do: {self}"
    # Of its end, the class takes care (embaudit/words/sentences.py).
    assert not self.meaning or " " in self.meaning, f"no sentence: {self}"
    # Arguments in other places: a rule's name where advice should be, a command where a name should be.
    assert not self.advice or " " in self.advice, f"no advice: {self}"
    assert re.fullmatch(r"([a-z][a-z0-9_]*)?", self.name), f"no rule's name: {self}"
    assert all(one is None or isinstance(one, int | float) for one in (self.value, self.low, self.high)), self


def _checked_table(self: Table, *given: Any, **named: Any) -> None:
    _plain_table(self, *given, **named)
    titles = [column.title for column in self.columns]
    # As an artifact a table is a mapping from these.
    assert len(set(titles)) == len(titles), f"two columns of one title: {titles}"


def _checked_error(self: EmbauditError, *given: Any, **named: Any) -> None:
    _plain_error(self, *given, **named)
    assert self.happened, f"nothing happened: {self!r}"
    module = sys._getframe(1).f_globals["__name__"]
    if module.startswith(("embaudit", "flows", "tasks")) and module != "embaudit.words.errors":
        assert all(isinstance(one, str) for one in (*given, *named.values())), f"no text: {given} {named}"
        assert self.next_step or isinstance(self, WITHOUT_STEP), f"nothing to do: {self!r}"
        faults = list(_faults_of_error(self, sys._getframe(1)))
        assert not faults, f"{faults}: {self!r}"


def _faults_of_error(error: EmbauditError, made_by: FrameType) -> Iterator[str]:
    """What is wrong with what it says, and the files and rows at hand that it does not name."""
    from told_before import QUOTED
    from told_in_full import WRONG

    said = " ".join((error.happened, error.kept, error.next_step))
    for text in (error.happened, error.kept, error.next_step):
        ours = QUOTED.sub("‹›", text)
        yield from (what for what in ("two ends", "a gap", "a plural after a 1") if WRONG[what].search(ours))
        yield from ["a value that is none"] if NONE.search(ours) else []
    module = made_by.f_globals["__name__"]
    if not (isinstance(error, OF_FILES) or module.startswith(READERS)) or UNNAMED.match(error.happened):
        return
    files: list[str] = []
    frame: FrameType | None = made_by
    while frame is not None and frame.f_globals["__name__"] == module:
        for name, held in frame.f_locals.items():
            shown = getattr(held, "shown", held)
            if name != "card" and (isinstance(held, Path) or (shown is not held and isinstance(shown, str))):
                files.append(str(shown))
            if name == "place" and isinstance(held, str) and held not in said:
                yield f"{held!r} is not named"
        frame = frame.f_back
    if files and not any(file in said or Path(file).name in said for file in files):
        yield f"none of {files} is named"


def _checked_stage(self: Outputs, table: TableOf, *given: Any) -> None:
    _plain_stage(self, table, *given)
    from pyarrow.parquet import read_metadata

    name = table_name(table)
    if not is_remote(path := self.files[name].path):
        written = read_metadata(path)
        for group in map(written.row_group, range(written.num_row_groups)):
            for column in map(group.column, range(group.num_columns)):
                held = column.statistics
                if held is not None and held.has_min_max and {held.min, held.max} - set(NOTHING):
                    MADE.add(f"{name}.{column.path_in_schema} filled")


def unfilled(made: set[str]) -> list[str]:
    """Columns of measures' tables in which no test's audit has more than nothing."""
    from embaudit.measures.listed import MEASURES

    tables = [row.table for measure in MEASURES.values() for row in measure.rows]
    columns = [f"{table.name}.{name}" for table in tables for name in table.columns]
    return [column for column in columns if f"{column} filled" not in made]


def unmade(made: set[str]) -> list[str]:
    """Rules, and their levels, of which no test made a finding."""
    from embaudit.cli.reference import catalogue

    levels = {"problem": lambda rule: rule.cells[2], "look": lambda rule: rule.cells[1]}
    found = []
    for _, rule in dict.fromkeys(pair for rules in catalogue().values() for pair in rules):
        name = re.sub(r"{\w+}", r"\\w+", rule.name)
        seen = {one.split(" ", 1)[1] for one in made if re.fullmatch(name, one.split(" ", 1)[0])}
        found += [f"{rule.name}: no finding"] if not seen else []
        found += [
            f"{rule.name}: never {level}" for level, of in levels.items() if seen and of(rule) and level not in seen
        ]
    return found


EmbauditError.__init__ = _checked_error  # type: ignore[method-assign]
Outputs._stage = _checked_stage  # type: ignore[method-assign]
Finding.__init__ = _checked_init  # type: ignore[method-assign]
Table.__init__ = _checked_table  # type: ignore[method-assign]


if __name__ == "__main__":
    every = set(Path(sys.argv[1]).read_text(encoding="utf-8").splitlines())
    lacking, empty = unmade(every), unfilled(every)
    print("What no test made:", *lacking, sep="\n")
    print("Columns that no test filled:", *empty, sep="\n")
    # Each level of each rule is asked of nobody: many are of the same sentence.
    sys.exit(any(one.endswith(": no finding") for one in lacking))
