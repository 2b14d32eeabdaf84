"""By what is a model known again from its vectors alone? What ``embaudit fingerprint`` and its call make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, model_validator

from embaudit.checkpoint.loading import CheckpointOptions
from embaudit.declared.option import Argument, Option
from embaudit.embedders.call_options import CacheOptions, EndpointOptions
from embaudit.questions.question import (
    MODEL_NAME,
    QUIET,
    PathName,
    Progress,
    Question,
    SeedPart,
    SentTexts,
    names_store,
)
from embaudit.stores.place import LARGE, StoreOptions
from embaudit.words.errors import UsageError

if TYPE_CHECKING:
    from embaudit.questions.vectors.fingerprint import Fingerprint
    from embaudit.questions.vectors.fitted import Stores


class FingerprintQuestion(CheckpointOptions, EndpointOptions, CacheOptions, StoreOptions, SeedPart, Question):
    """Write a model's fingerprint, by which embaudit vectors names the model that built a store.

    SOURCE is one checkpoint, endpoint or Python object, which embeds some 300 texts of the embedded sample; or stores
    that the model built, of which each counts once, however large: the more, and the more unlike in subject, the
    better. It keeps a few kilobytes that all of its vectors have in common, no vector and no text. What cannot be told
    from other models by these is refused.
    """

    asks: ClassVar = "fingerprint"

    sources: Annotated[Sequence[Any], Argument(metavar="SOURCE", holds="function")] = Field(
        kw_only=False,
        description="A checkpoint, an endpoint's address or a Python object, as elsewhere; or stores that one model "
        "built (docs/vectors.md lists what is read).",
    )
    name: Annotated[str, Option(metavar="NAME")] = Field(
        pattern=MODEL_NAME,
        description="What the model is called; a fingerprint of the same name is replaced, and one that comes with "
        "embaudit is no longer used.",
    )
    other: Annotated[Sequence[Any], Option(metavar="SOURCE", holds="function")] = Field(
        (),
        description="Another model that must not pass for this one, such as its base: a checkpoint, an endpoint or a "
        "store.",
    )
    out: Annotated[PathName | None, Option(default="HOME/fingerprints/NAME.json, where vectors finds it")] = Field(
        None, description="Where to write the fingerprint."
    )

    @model_validator(mode="before")
    @classmethod
    def _one_is_a_list_of_one(cls, asked: Any) -> Any:
        if not isinstance(asked, dict):
            return asked
        several = {
            name: asked[name] if isinstance(asked[name], list | tuple) else [asked[name]]
            for name in ("sources", "other")
            if name in asked
        }
        return {**asked, **several}

    @property
    def path(self) -> Path:
        """Where the fingerprint is written."""
        from embaudit.questions.vectors.builder import own_file

        return own_file(self.name) if self.out is None else Path(self.out)

    @property
    def functions(self) -> list[Any]:
        return [one for one in (*self.sources, *self.other) if not names_store(one)]

    def texts_sent(self) -> Iterator[SentTexts]:
        yield SentTexts(self.functions, "some 300 of the embedded sample", "they would leave this one")

    def answer(self, progress: Progress = QUIET) -> Fingerprint:
        from embaudit.questions.fingerprint.make import make_fingerprint
        from embaudit.questions.vectors.builder import refuse_other_file, write_fingerprints

        self._require_one_model()
        # Before a model is loaded, which takes longer.
        refuse_other_file(self.path, self.name)
        own = self._rows(self.sources, progress)
        others = {name: rows for other in self.other for name, rows in self._rows([other], progress).items()}
        is_of_function = not names_store(self.sources[0])
        made = make_fingerprint(self.name, own, others, self._shown(self.sources), is_of_function=is_of_function)
        write_fingerprints([made], self.path)
        return made

    def _require_one_model(self) -> None:
        if not self.sources:
            raise UsageError("Nothing is named to make a fingerprint of.", next_step="embaudit fingerprint SOURCE")
        functions = [one for one in self.sources if not names_store(one)]
        if functions and len(self.sources) > 1:
            raise UsageError(
                f"{self._shown(functions)[0]} is no store, and a function is taken by itself: it embeds the same texts "
                "for every fingerprint.",
                kept="No fingerprint was written.",
                next_step="Name one function, or stores alone.",
            )

    def _rows(self, sources: Sequence[Any], progress: Progress) -> dict[str, Stores]:
        """Different rows at length 1, by kind of text or by store."""
        from embaudit.embedders.kept import cost_line
        from embaudit.embedders.opened import open_kept
        from embaudit.questions.fingerprint.make import of_one_dimension, rows_of_function, rows_of_store, sample_texts

        if names_store(sources[0]):
            options = self.read_options(allow_pickle=self.allow_pickle, most=LARGE, seed=self.seed)
            names = self._shown(sources)
            return of_one_dimension(
                {name: rows_of_store(str(one), options, self.seed) for name, one in zip(names, sources, strict=True)}
            )
        [given] = sources
        (call,) = [call for one, call in zip(self.functions, self.calls(*self.functions), strict=True) if one is given]
        with open_kept(given, self.load_options, call) as function:
            if function.checkpoint is None:
                progress.say(
                    cost_line(function, [text for some in sample_texts().values() for text in some], "", "document")
                )
            rows = rows_of_function(function, progress.done)
            return {f"{function.name}: {kind}": units for kind, units in rows.items()}

    @staticmethod
    def _shown(sources: Sequence[Any]) -> list[str]:
        from embaudit.embedders.opened import name_of
        from embaudit.words.masking import shown_place

        return [shown_place(name_of(one)) for one in sources]
