"""Questions as data: a deployment's parameter, an entry of a watch list."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from embaudit.questions.names import ASKS, NAMES
from embaudit.questions.question import Question
from embaudit.words.errors import UsageError, did_you_mean


def model_of(asks: str) -> type[Question]:
    """The model of a question, by its name."""
    module, _, model = NAMES[asks].model.partition(":")
    question: type[Question] = getattr(import_module(f"embaudit.questions.{module}"), model)
    return question


QUESTIONS: dict[str, type[Question]] = {name: model_of(name) for name in ASKS}


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
