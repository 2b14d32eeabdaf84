"""All questions by name, for whoever has one as data: a deployment's parameter, an entry of a watch list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embaudit.questions.check.question import CheckQuestion
from embaudit.questions.parity.question import ParityQuestion
from embaudit.questions.passport.question import VerifyQuestion
from embaudit.questions.question import Question
from embaudit.questions.search.question import SearchQuestion
from embaudit.questions.switch.question import SwitchQuestion
from embaudit.questions.vectors.question import VectorsQuestion
from embaudit.questions.why.question import WhyQuestion
from embaudit.words.errors import UsageError, did_you_mean

QUESTIONS: dict[str, type[Question]] = {
    question.asks: question
    for question in (
        CheckQuestion,
        ParityQuestion,
        VectorsQuestion,
        VerifyQuestion,
        SearchQuestion,
        WhyQuestion,
        SwitchQuestion,
    )
}


def question_of(asks: str, question: Mapping[str, Any]) -> Question:
    """A question by its name and its parameters.

    Raises:
        UsageError: if there is no such question, or a parameter is unknown or out of bounds.
    """
    if asks not in QUESTIONS:
        raise UsageError(
            f"There is no question {asks!r}.",
            next_step=f"{did_you_mean(asks, QUESTIONS)}There are: {', '.join(QUESTIONS)}.",
        )
    return QUESTIONS[asks].of(**question)
