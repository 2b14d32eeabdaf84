"""Writes the file that tells a function from any other, and asks whether what is served is that function."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from embaudit.checkpoint.loading import CheckpointOptions, RunOptions
from embaudit.declared.option import Argument, Option
from embaudit.embedders.call_options import EndpointOptions
from embaudit.questions.question import (
    FUNCTION,
    QUIET,
    Other,
    OtherPrecisionPart,
    PathName,
    Progress,
    Question,
    SentTexts,
)

if TYPE_CHECKING:
    from embaudit.questions.passport.passport import Passport
    from embaudit.questions.passport.verify import PassportReport


class PassportQuestion(CheckpointOptions, EndpointOptions, Question):
    """Write CHECKPOINT's passport: more than 50 texts that servers get wrong, with their vectors and tolerances.

    CHECKPOINT may also be the address of an endpoint or a Python object (python:MODULE:NAME), whose files nobody sees:
    its passport tells tomorrow whether it is still the same function.

    Keep it beside an index or in a server's image; embaudit verify, or a script without embaudit, says whether what is
    served is still the same function.
    """

    asks: ClassVar = "passport"

    checkpoint: Annotated[Any, Argument(metavar="CHECKPOINT", holds="function"), FUNCTION] = Field(kw_only=False)
    out: Annotated[PathName | None, Option(default="passport.json")] = Field(
        None,
        kw_only=False,
        description="Where to write it; an earlier passport of the same checkpoint is replaced.",
    )

    def texts_sent(self) -> Iterator[SentTexts]:
        yield SentTexts([self.checkpoint], "some 60 made-up ones", "they would leave this one")

    def answer(self, progress: Progress = QUIET) -> Passport:
        from embaudit.embedders.opened import open_function
        from embaudit.questions.passport.make import make_passport
        from embaudit.questions.passport.passport import refuse_other_file, write_passport

        if self.out is not None:
            # Before a model is loaded, which takes longer.
            refuse_other_file(Path(self.out))
        (call,) = self.calls(self.checkpoint)
        with open_function(self.checkpoint, self.load_options, call) as function:
            made = make_passport(function, self.load_options)
        if self.out is not None:
            write_passport(made, Path(self.out))
        return made


class VerifyQuestion(RunOptions, EndpointOptions, OtherPrecisionPart, Question):
    """Does OTHER give the vectors that PASSPORT holds, and if not, on which kinds of text?

    Asks for the passport's texts alone, an endpoint and a Python object also in batches. A key for the endpoint is read
    from EMBAUDIT_API_KEY. Exit code 0 if it is the same function, 1 if not, 2 if it could not be compared. For the
    reason of a difference: embaudit parity.
    """

    asks: ClassVar = "verify"

    passport: Annotated[Any, Argument(metavar="PASSPORT", is_file=True)] = Field(
        kw_only=False, description="A passport, or its file. A checkpoint is read with the settings that it has."
    )
    other: Other = Field(kw_only=False)

    @classmethod
    def about(cls) -> tuple[str, ...]:
        return "other", "passport"

    @cached_property
    def read(self) -> Passport:
        """The passport; read before anything is sent."""
        from embaudit.questions.passport.passport import read_passport

        given: Passport | str | Path = self.passport
        return read_passport(Path(given)) if isinstance(given, str | Path) else given

    def texts_sent(self) -> Iterator[SentTexts]:
        yield SentTexts(
            [self.other],
            f"the {len(self.read.canaries)} made-up ones of the passport",
            "the passport's texts would leave this one",
        )

    def make_first(self) -> str:
        """Make the passport, which is not there yet; what was done, in a sentence."""
        path = Path(self.passport)
        path.parent.mkdir(parents=True, exist_ok=True)
        shared = (*RunOptions.model_fields, *EndpointOptions.model_fields)
        made = PassportQuestion.of(checkpoint=self.other, out=path, **{name: getattr(self, name) for name in shared})
        texts = len(made.answer().canaries)
        return f"Its passport was made: {texts} texts, which it is compared with from the next time on."

    def answer(self, progress: Progress = QUIET) -> PassportReport:
        from embaudit.checkpoint import AskedPrompts, LoadOptions
        from embaudit.embedders.opened import open_function
        from embaudit.questions.passport.verify import verify_with

        settings = self.read.settings
        options = LoadOptions(
            self.device,
            self.dtype,
            settings.pooling,
            settings.max_length,
            self.allow_pickle,
            self.trust_remote_code,
            AskedPrompts(settings.prompt),
        )
        (call,) = self.calls(self.other)
        with open_function(self.other, options, call) as function:
            return verify_with(self.read, function)
