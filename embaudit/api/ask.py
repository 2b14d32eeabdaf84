"""The questions as calls: ``embaudit.why(store, function, …)`` has the fields of ``WhyQuestion`` as keywords."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from embaudit.questions.check.question import CheckQuestion
from embaudit.questions.fingerprint.question import FingerprintQuestion
from embaudit.questions.parity.question import ParityQuestion
from embaudit.questions.passport.question import PassportQuestion, VerifyQuestion
from embaudit.questions.question import Question
from embaudit.questions.report import Report
from embaudit.questions.reproduce.question import ReproduceQuestion
from embaudit.questions.search.question import SearchQuestion
from embaudit.questions.switch.question import SwitchQuestion
from embaudit.questions.vectors.question import VectorsQuestion
from embaudit.questions.why.question import WhyQuestion

# What editors complete after ``embaudit.``: of the others, they know no type.
__all__ = ["check", "fingerprint", "parity", "passport", "reproduce", "search", "switch", "vectors", "verify", "why"]

Answer_co = TypeVar("Answer_co", covariant=True)
Fields = ParamSpec("Fields")


class Answering(Protocol[Answer_co]):
    """A question, by the type of its answer."""

    def answer(self) -> Answer_co: ...


def asking(made: Callable[Fields, Answering[Answer_co]]) -> Callable[Fields, Answer_co]:
    """The call that asks a question: its arguments by place or name, all else by name; editors complete them."""
    question = cast("type[Question]", made)
    arguments, fields = question.arguments(), question.model_fields

    def ask(*given: Any, **named: Any) -> Any:
        if len(given) > len(arguments):
            raise TypeError(f"{question.asks}() takes {len(arguments)} arguments by place, and {len(given)} were given")
        by_place = dict(zip(arguments, given, strict=False))
        if twice := by_place.keys() & named.keys():
            raise TypeError(f"{question.asks}() got {', '.join(sorted(twice))} twice: by place and by name")
        answer = question.of(**by_place, **named).answer()
        if isinstance(answer, Report):
            answer.remember()
        return answer

    kinds = {True: inspect.Parameter.POSITIONAL_OR_KEYWORD, False: inspect.Parameter.KEYWORD_ONLY}
    ask.__name__ = ask.__qualname__ = question.asks
    ask.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                name,
                kinds[name in arguments],
                default=inspect.Parameter.empty if fields[name].is_required() else fields[name].default,
                annotation=fields[name].annotation,
            )
            for name in (*arguments, *(name for name in fields if name not in arguments))
        ]
    )
    said = "\n".join(f"    {name}: {field.description}" for name, field in fields.items())
    ask.__doc__ = f"{inspect.cleandoc(question.__doc__ or '')}\n\nArgs:\n{said}\n"
    return cast("Callable[Fields, Answer_co]", ask)


check = asking(CheckQuestion)
fingerprint = asking(FingerprintQuestion)
parity = asking(ParityQuestion)
passport = asking(PassportQuestion)
reproduce = asking(ReproduceQuestion)
search = asking(SearchQuestion)
switch = asking(SwitchQuestion)
vectors = asking(VectorsQuestion)
verify = asking(VerifyQuestion)
why = asking(WhyQuestion)
