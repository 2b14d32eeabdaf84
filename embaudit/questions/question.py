"""What can be asked: one frozen model a question, from which its command, its call and its documentation are made.

A field says everything about a parameter once: name, type, bounds, default, and the sentence that ``--help``, a call's
help and docs/commands.md print. Fields with ``kw_only=False`` are a question's arguments, in their order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from embaudit.declared.option import written_as
from embaudit.system.small_files import complaint
from embaudit.words.errors import UsageError

if TYPE_CHECKING:
    from embaudit.questions.passport.passport import Passport
    from embaudit.questions.report import Report
    from embaudit.questions.vectors.fingerprint import Fingerprint


@dataclass(frozen=True)
class Progress:
    """Who waits for an answer, and is told how far it is.

    Attributes:
        say: a line, before texts are sent and when something is known early.
        done: what is done, how much more of it, and of how much altogether, if that is known.
        asked: of what an endpoint is asked: what, how much so far, and of how much.
        keeps_what_ran: whether Ctrl-C ends in an answer on what ran, where a question has parts.
    """

    say: Callable[[str], None] = lambda line: None
    done: Callable[[str, int, int | None], None] = lambda what, more, total: None
    asked: Callable[..., None] | None = None
    keeps_what_ran: bool = False

    def comparing(self, what: str) -> None:
        self.say(f"Comparing {what} …")


QUIET = Progress()


@dataclass(frozen=True)
class SentTexts:
    """Texts that a question sends to whatever of ``to`` is an endpoint.

    Attributes:
        what: is sent, as the end of "Texts are sent to …: ".
        warning: what that means if it is another machine, as the end of a sentence.
    """

    to: Sequence[Any]
    what: str
    warning: str


class Question(BaseModel, ABC):
    """A question with all of its parameters; its docstring is its command's help."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    # What the question's command and call are called.
    asks: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _none_is_nothing(cls, asked: Any) -> Any:
        """None for a mapping is an empty one."""
        if not isinstance(asked, dict):
            return asked
        fields = cls.model_fields
        return {
            name: value
            for name, value in asked.items()
            if value is not None or name not in fields or fields[name].default != {}
        }

    @model_validator(mode="after")
    def _is_allowed(self) -> Self:
        for name, field in type(self).model_fields.items():
            members, value = written_as(field).members, getattr(self, name)
            if members and value != field.default:
                for one in [value] if isinstance(value, str) else value:
                    if one not in members:
                        raise ValueError(f"{name}: {one!r} is none of {', '.join(members)}")
        return self

    @classmethod
    def of(cls, **asked: Any) -> Self:
        """A question from what a user wrote.

        Raises:
            UsageError: if a parameter does not exist, or its value is not allowed.
        """
        try:
            return cls(**asked)
        except ValidationError as error:
            first = dict(error.errors()[0])
            raise UsageError(
                f"What is asked of embaudit {cls.asks} is invalid: {complaint(first, cls)}.",
                next_step=f"Options: embaudit {cls.asks} --help",
            ) from error

    @classmethod
    def about(cls) -> tuple[str, ...]:
        """Names of what it is asked of, and of what that is compared with or asked through."""
        return cls.arguments()

    @classmethod
    def arguments(cls) -> tuple[str, ...]:
        """Names of what is given by place."""
        return tuple(name for name, field in cls.model_fields.items() if field.kw_only is False)

    def texts_sent(self) -> Iterator[SentTexts]:
        """What leaves this machine if a function is an endpoint."""
        yield from ()

    @property
    def is_live(self) -> bool:
        """Whether it is asked anew even if nothing that it names has changed."""
        return False

    def also_read(self) -> Iterator[Path]:
        """Folders of this machine that an answer depends on, without being named."""
        yield from ()

    @abstractmethod
    def answer(self, progress: Progress = QUIET) -> Report | Passport | Fingerprint:
        """Find the answer.

        Raises:
            EmbauditError: if something that is named cannot be read or asked.
        """
