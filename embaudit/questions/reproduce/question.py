"""Are published scores reached here? What ``embaudit reproduce`` and ``embaudit.reproduce`` ask."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from embaudit.checkpoint.loading import PromptOptions
from embaudit.declared.option import Argument, Option
from embaudit.questions.question import FUNCTION, QUIET, MaterialPart, PathName, Progress, Question
from embaudit.words.errors import CorpusError, UsageError

if TYPE_CHECKING:
    from embaudit.questions.reproduce.readings import Data
    from embaudit.questions.reproduce.report import ReproduceReport

# More texts than there are: all of them are read.
ALL = 10**9


class ReproduceQuestion(PromptOptions, MaterialPart, Question):
    """Does CHECKPOINT, as it is declared here, reach the scores that MTEB's results publish of it?

    The whole of the data is scored: a task's judged queries (--data) or scored pairs (--pairs), the texts and the split
    that were published. Where a score is not reached, other poolings, prompts, limits, special tokens and dimensions
    are tried until one reaches it. Takes as long as encoding the data, minutes for some thousand documents.
    Exit code 0 if every score is reached as declared, 1 if not.
    """

    asks: ClassVar = "reproduce"

    checkpoint: Annotated[Any, Argument(metavar="CHECKPOINT", holds="function"), FUNCTION] = Field(kw_only=False)
    mteb: Annotated[Sequence[PathName], Option(metavar="FILE", is_file=True)] = Field(
        min_length=1,
        description="Results as MTEB writes them: a file of a task, or a folder of several; or rows with task and "
        "score (docs/methods.md).",
    )
    part: Annotated[str | None, Option(metavar="NAME")] = Field(
        None, description="The split or subset that the data are, where a task has several. By default, its test split."
    )

    def answer(self, progress: Progress = QUIET) -> ReproduceReport:
        from embaudit.checkpoint import load_checkpoint
        from embaudit.corpora.scores import read_scores
        from embaudit.embedders.opened import is_checkpoint, name_of
        from embaudit.questions.reproduce.readings import of_data
        from embaudit.questions.reproduce.report import reproduce

        name = name_of(self.checkpoint)
        if not (isinstance(self.checkpoint, str | Path) and is_checkpoint(self.checkpoint)):
            raise UsageError(
                f"{name} has no files that are seen here, so that no other reading of it can be tried.",
                next_step="Give the checkpoint that it serves; embaudit parity says whether both are the same.",
            )
        scores = read_scores([Path(file) for file in self.mteb], name).scores
        published = of_data(scores, self._data(), self.part)
        checkpoint = load_checkpoint(str(self.checkpoint), self.load_options, may_stay_in_files=True)
        return reproduce(name, checkpoint, published, progress)

    def _data(self) -> list[Data]:
        """All of what is given.

        Raises:
            UsageError: if nothing is.
            CorpusError: if some of it cannot be read or scored.
        """
        from embaudit.measures.quality.material import MaterialLimits

        if not (self.pairs or self.data):
            raise UsageError(
                "There is nothing to score: published scores are of data that were published, too.",
                next_step="Give a retrieval task's folder in BEIR's layout (--data) or pairs with scores (--pairs).",
            )
        material = self.material(MaterialLimits(ALL, ALL, ALL))
        if material.missing:
            raise CorpusError(f"Cannot score {material.missing[0]}", next_step="See docs/corpora.md.")
        return [*(material.pairs if self.pairs else ()), *(material.collections if self.data else ())]
