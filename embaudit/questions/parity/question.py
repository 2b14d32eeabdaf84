"""Is it served as it was audited? What ``embaudit parity`` and ``embaudit.parity`` ask of two functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from embaudit.checkpoint.loading import CheckpointOptions
from embaudit.declared.option import Argument, Option
from embaudit.embedders.call_options import RoleOptions
from embaudit.questions.question import (
    FUNCTION,
    MATERIAL_LEAVES,
    QUIET,
    ExplanationPart,
    MaterialPart,
    Other,
    OtherPrecisionPart,
    Progress,
    Question,
    SentTexts,
)
from embaudit.words.errors import UsageError

if TYPE_CHECKING:
    from embaudit.questions.parity.parity import ParityReport


class ParityQuestion(CheckpointOptions, RoleOptions, MaterialPart, ExplanationPart, OtherPrecisionPart, Question):
    """Do CHECKPOINT and OTHER give the same vectors, and if not, how would CHECKPOINT have to be used to do so?

    Either may be a checkpoint, the address of an endpoint, or a Python object (python:MODULE:NAME); a difference is
    explained from the side that is a checkpoint. Asks both for texts of every kind that servers get wrong, an endpoint
    also in batches, again, and in parallel. A key for the endpoint is read from EMBAUDIT_API_KEY. Exit code 0 if they
    are the same function, 1 if not, 2 if they could not be compared.
    """

    asks: ClassVar = "parity"

    checkpoint: Annotated[Any, Argument(metavar="CHECKPOINT", holds="function"), FUNCTION] = Field(kw_only=False)
    other: Other = Field(kw_only=False)
    backend: Annotated[Literal["torch", "onnx", "openvino"], Option("with-backend")] = Field(
        "torch",
        description="What another checkpoint runs in: onnx by onnxruntime, openvino by sentence-transformers.",
    )
    stored: Annotated[Literal["as given", "int8", "binary"], Option("with-stored", members=("int8", "binary"))] = Field(
        "as given", description="How an index stores another checkpoint's vectors."
    )
    kept_dimensions: Annotated[int | None, Option("with-dimensions", metavar="N")] = Field(
        None, ge=1, description="Keep the first N dimensions of its vectors."
    )

    @classmethod
    def about(cls) -> tuple[str, ...]:
        return "other", "checkpoint"

    def texts_sent(self) -> Iterator[SentTexts]:
        yield SentTexts([self.checkpoint, self.other], *MATERIAL_LEAVES)

    def answer(self, progress: Progress = QUIET) -> ParityReport:
        from embaudit.checkpoint import LoadOptions
        from embaudit.embedders.checkpoint import backend_function
        from embaudit.embedders.function import AsStored
        from embaudit.embedders.opened import is_checkpoint, is_endpoint, open_both
        from embaudit.questions.parity.parity import compare_with

        material = self.material()
        other, options = self.other, self.load_options
        if self.dimensions is not None and not any(map(is_endpoint, (self.checkpoint, other))):
            raise UsageError(
                "dimensions is what an endpoint is asked for, and there is none.",
                next_step="To keep the first ones of the other's vectors, as an index may: kept_dimensions, or "
                "--with-dimensions.",
            )
        if not is_checkpoint(other) and (self.dtype != "float32" or self.backend != "torch"):
            raise UsageError(
                "A precision and a backend are those of another checkpoint: an endpoint and a Python object are asked "
                "as they are.",
                next_step="Leave them out.",
            )
        # Another checkpoint is read as it declares.
        declared = LoadOptions(
            device=self.device,
            dtype=self.dtype,
            allow_pickle=self.allow_pickle,
            trust_remote_code=self.trust_remote_code,
        )
        calls = self.calls(self.checkpoint, other)
        if self.backend != "torch":
            other = backend_function(str(other), self.backend, declared)
        known, second = open_both((self.checkpoint, other), (options, declared), calls)
        if self.stored != "as given" or self.kept_dimensions is not None:
            second = AsStored(second, self.stored, self.kept_dimensions)
        with known, second:
            return compare_with(
                known,
                second,
                material,
                with_explanation=self.with_explanation,
                progress=progress.comparing,
            )
