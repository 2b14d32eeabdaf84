"""Every finding that a test makes, by whatever way, has the form that pages and tables rely on."""

from __future__ import annotations

import re
from typing import Any

from embaudit.finding import Finding

_plain_init = Finding.__init__


def _checked_init(self: Finding, *given: Any, **named: Any) -> None:
    _plain_init(self, *given, **named)
    assert self.sentence, f"no sentence: {self}"
    # Of its end, the class takes care (embaudit/sentences.py).
    assert not self.meaning or " " in self.meaning, f"no sentence: {self}"
    # Arguments in other places: a rule's name where advice should be, a command where a name should be.
    assert not self.advice or " " in self.advice, f"no advice: {self}"
    assert re.fullmatch(r"([a-z][a-z0-9_]*)?", self.name), f"no rule's name: {self}"
    assert all(one is None or isinstance(one, int | float) for one in (self.value, self.low, self.high)), self


Finding.__init__ = _checked_init  # type: ignore[method-assign]
