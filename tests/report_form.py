"""Whatever a test makes of findings, tables and errors has the form that people, pages and tables rely on."""

from __future__ import annotations

import re
import sys
from functools import cache
from types import FrameType
from typing import Any

from embaudit.declared.document import Table
from embaudit.declared.rule import Finding, Rule
from embaudit.words.errors import CheckFailed, EmbauditError, HubUnreachable, MeasureError

# A verdict on other findings, and a note on how a store is read.
SUMS_UP = ("verdict", "how_it_is_read")
# What nobody can give: a look inside a service, a base of the same architecture, mean pooling, states between layers,
# more rows of a vocabulary, a limit that can be tried in seconds, larger layers, more sentences in twelve languages.
CANNOT_BE_GIVEN = ("inside", "weights_changed", "thrown_away", "lost_in_layer", "vocabulary_fit", "tail")
CANNOT_BE_GIVEN += ("untrained_layers", "retrieval")
# What sums up is made of other findings, and what is read back was made before.
WITHOUT_RULE = ("embaudit.questions.report", "embaudit.questions.why.report", "embaudit.api.reading")
_plain_init = Finding.__init__
_plain_table = Table.__init__
_plain_error = EmbauditError.__init__
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
    from embaudit.pages.rules import catalogue

    rules = {rule.name for rules in catalogue().values() for _, rule in rules}
    return any(re.fullmatch(re.sub(r"{\w+}", r"\\w+", rule), name) for rule in rules)


def _checked_init(self: Finding, *given: Any, **named: Any) -> None:
    _plain_init(self, *given, **named)
    assert self.sentence, f"no sentence: {self}"
    made_by = sys._getframe(1)
    while made_by.f_globals["__name__"] in ("dataclasses", Rule.__module__) and made_by.f_back is not None:
        made_by = made_by.f_back
    if _is_of_a_report(made_by):
        is_of_other_findings = made_by.f_globals["__name__"] in WITHOUT_RULE
        assert is_of_other_findings or _is_declared(self.name), f"no rule's name: {self}"
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


EmbauditError.__init__ = _checked_error  # type: ignore[method-assign]
Finding.__init__ = _checked_init  # type: ignore[method-assign]
Table.__init__ = _checked_table  # type: ignore[method-assign]
