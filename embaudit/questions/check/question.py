"""May it be served? What ``embaudit check`` and ``embaudit.check`` ask of a checkpoint, an endpoint or an object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from embaudit.checkpoint.loading import CheckpointOptions, PromptOptions
from embaudit.declared.option import Argument, Option
from embaudit.embedders.call_options import CacheOptions, EndpointOptions
from embaudit.questions.question import FUNCTION, MATERIAL_LEAVES, QUIET, CorpusPart, Progress, Question, SentTexts
from embaudit.words.errors import CheckpointError, UsageError

if TYPE_CHECKING:
    from embaudit.checkpoint import LoadOptions
    from embaudit.checkpoint.modules import NoTransformer
    from embaudit.measures.quality.material import Material, MaterialLimits
    from embaudit.questions.check.check import CheckReport

# How a checkpoint is loaded: nothing of what is asked as it is.
LOADING = ("device", "pooling", "max_length", "allow_pickle", "trust_remote_code")


class CheckQuestion(PromptOptions, CheckpointOptions, CorpusPart, EndpointOptions, CacheOptions, Question):
    """Is CHECKPOINT the network that was trained, declared right, and better than word overlap?

    CHECKPOINT may also be the address of an endpoint (http://localhost:8080): then it is told from its vectors whether
    they can be used, whether a text has one vector however it is asked, how much of a long text is read, and what they
    are worth. A key is read from EMBAUDIT_API_KEY. The same is told of a Python object (python:MODULE:NAME) and of a
    static model.

    Takes seconds and needs no server or warehouse. Exit code 0 if it may be served, 1 if not, 2 if a part could not be
    checked, or if Ctrl-C stopped it: then the verdict is on what ran. With --files, exit code 0 says only that nothing
    was found wrong in the files.
    """

    asks: ClassVar = "check"

    checkpoint: Annotated[Any, Argument(metavar="CHECKPOINT", holds="function"), FUNCTION] = Field(kw_only=False)
    base: Annotated[Any, Option(metavar="CHECKPOINT", holds="function")] = Field(
        None, description="What it was tuned from, or its last revision: say what changed."
    )
    files_only: Annotated[bool, Option("files")] = Field(
        False,
        description="Run nothing: look at settings, tokenizer and weights alone, of a checkpoint of any size, as fast "
        "as they are read.",
    )
    max_texts: Annotated[int | None, Option(metavar="N")] = Field(
        None, ge=20, description="Ask an endpoint for so many of the pairs, queries and documents. By default, for all."
    )

    @property
    def load_options(self) -> LoadOptions:
        return replace(super().load_options, dtype="auto")

    def texts_sent(self) -> Iterator[SentTexts]:
        if self.files_only:
            self._require_files_alone()
        yield SentTexts([self.checkpoint], *MATERIAL_LEAVES)

    def material(self, limits: MaterialLimits | None = None) -> Material:
        """The same, with golden queries and the texts that they should find.

        Raises:
            UsageError: if one of them is given without the other, or they do not belong together.
        """
        from embaudit.corpora.golden import load_golden
        from embaudit.measures.quality.material import golden_of

        given = super().material(limits)
        if self.golden is None and self.corpus is None:
            return given
        if self.golden is None or self.corpus is None:
            lacking, present = (
                ("--corpus TEXTS", self.golden) if self.corpus is None else ("--golden FILE", self.corpus)
            )
            raise UsageError(
                f"{present} alone asks nothing: golden queries and the texts that they should find are given together.",
                next_step=f"Give {lacking}, too.",
            )
        return replace(given, golden=(golden_of(load_golden(Path(self.golden), str(self.corpus))),))

    def answer(self, progress: Progress = QUIET) -> CheckReport:
        from embaudit.embedders.opened import name_of
        from embaudit.embedders.pipeline import is_pipeline

        if self.files_only:
            self._require_files_alone()
        material = self.material()
        with ExitStack() as stack:
            given = self.checkpoint
            if is_pipeline(given) and str(getattr(given, "backend", "torch")) == "torch":
                given = _folder(given, stack)
            base = None if self.base is None else _folder(self.base, stack)
            report = self.model_copy(update={"checkpoint": given, "base": base})._report(material, progress)
        return replace(
            report,
            checkpoint=name_of(self.checkpoint) if report.kind in ("checkpoint", "pipeline") else report.checkpoint,
            base=None if self.base is None else name_of(self.base),
        )

    def _report(self, material: Material, progress: Progress) -> CheckReport:
        """Of what is a name, a folder, an address or an object that is asked as it is."""
        from embaudit.checkpoint.modules import NoTransformer
        from embaudit.embedders.opened import is_checkpoint, name_of
        from embaudit.questions.check.check import check, check_files

        is_loaded, name = is_checkpoint(self.checkpoint), name_of(self.checkpoint)
        if self.files_only and not is_loaded:
            raise UsageError(
                f"{name} has no files that are seen here.", next_step="Leave out --files: its vectors are checked."
            )
        if not is_loaded:
            return self._asked_as_it_is(material, progress)
        try:
            if self.files_only:
                return check_files(name, self.load_options, progress.say)
            return check(
                name,
                self.load_options,
                material,
                self.base,
                progress.say,
                keeps_what_ran=progress.keeps_what_ran,
            )
        except NoTransformer as refused:
            if self.files_only:
                raise UsageError(
                    f"Its files alone say little of {name}: {refused.happened}",
                    next_step="Leave out --files: its vectors are checked.",
                ) from refused
            return self._pipeline(name, material, refused)

    def _asked_as_it_is(self, material: Material, progress: Progress) -> CheckReport:
        from embaudit.embedders.kept import cost_line
        from embaudit.embedders.opened import open_kept
        from embaudit.questions.blackbox.quality import CallerPrompts
        from embaudit.questions.check.served import check_served

        self._require_not_set(LOADING)
        prompts = (self.prompt, self.query_prompt, self.document_prompt)
        every, query, document = (
            _literal(name, given)
            for name, given in zip(("prompt", "query_prompt", "document_prompt"), prompts, strict=True)
        )
        callers = CallerPrompts(query or every, document or every, every)
        if self.max_texts is not None:
            material = within(material, self.max_texts)
        judged = (*material.collections, *material.golden)
        (call,) = self.calls(self.checkpoint)
        with open_kept(self.checkpoint, self.load_options, call, progress.asked) as function:
            sent = [
                *(text for pairs in material.pairs for text in callers.texts([*pairs.firsts, *pairs.seconds])),
                *(text for some in judged for text in callers.queries(some.queries)),
                *(text for some in judged for text in callers.documents(some.documents)),
            ]
            progress.say(cost_line(function, sent, "and some hundred made-up and changed ones"))
            return check_served(function, material, callers)

    def _pipeline(self, name: str, material: Material, refused: NoTransformer) -> CheckReport:
        """Check the vectors of a checkpoint that is no transformer; that nothing reads it is a result."""
        from embaudit.embedders.pipeline import open_pipeline
        from embaudit.questions.check.check import not_loadable
        from embaudit.questions.check.served import check_served

        self._require_not_set(())
        try:
            function = open_pipeline(name, self.load_options, refused)
        except CheckpointError as error:
            return not_loadable(name, error)
        with function:
            return check_served(function, material)

    def _require_files_alone(self) -> None:
        """Refuse what would have to be compared by running something, where only files are looked at."""
        named = " and ".join(name for name in ("base", "pairs", "data", "golden") if getattr(self, name))
        if named:
            raise UsageError(
                f"By files alone, nothing can be measured on {named}: the network would have to be run.",
                next_step=f"Leave out --files, or {named}.",
            )

    def _require_not_set(self, names: Sequence[str]) -> None:
        """Refuse settings of how a checkpoint is loaded, which what is asked as it is does not take."""
        fields = type(self).model_fields
        given = [name for name in (*names, "base") if getattr(self, name) != fields[name].default]
        if given:
            raise UsageError(
                f"{self.checkpoint} is asked as it is: {' and '.join(given)} cannot be set for it.",
                next_step="Leave it out, or check the checkpoint's folder.",
            )


def within(material: Material, most: int) -> Material:
    """Its first pairs, and first queries and documents, that are no more texts than so many altogether."""
    sizes = [2 * len(pairs.scores) for pairs in material.pairs]
    sizes += [len(some.queries) + len(some.documents) for some in (*material.collections, *material.golden)]
    return material.part(min(1.0, most / max(1, sum(sizes))))


def _folder(checkpoint: Any, stack: ExitStack) -> str:
    """A reference that can be loaded: the temporary folder that a model in memory is saved to."""
    if isinstance(checkpoint, str | Path):
        return str(checkpoint)
    if not (hasattr(checkpoint, "save_pretrained") and hasattr(checkpoint, "encode")):
        raise UsageError(
            f"A checkpoint is a name, a folder or a loaded SentenceTransformer, not a {type(checkpoint).__name__}.",
            next_step="Save the model in sentence-transformers format and check that folder.",
        )
    folder = stack.enter_context(TemporaryDirectory())
    checkpoint.save_pretrained(folder, create_model_card=False)
    return folder


def _literal(name: str, prompt: str | None) -> str:
    """A prompt's own text: the names of a checkpoint's prompts are in its files."""
    if prompt and prompt.isidentifier():
        raise UsageError(
            f"{name} = {prompt!r} names a prompt in a checkpoint's files, which nobody sees here.",
            next_step="Give the text that its callers put before theirs, such as 'query: '.",
        )
    return prompt or ""
