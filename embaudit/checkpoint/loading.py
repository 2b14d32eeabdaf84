"""How a checkpoint is loaded and run: what a request asks, and what every task is told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from embaudit.declared.option import Option

if TYPE_CHECKING:
    from embaudit.checkpoint import LoadOptions

DTYPE = Field(description="Precision; auto is float32.")
PROMPTS = ("prompt", "query_prompt", "document_prompt")


class RunOptions(BaseModel):
    """Where a checkpoint runs, and what it may run."""

    model_config = ConfigDict(frozen=True)

    device: str = Field("auto", description="Device: auto, cpu, cuda, cuda:1, mps.")
    allow_pickle: bool = Field(False, description="Read pickled weights, which can run arbitrary code.")
    trust_remote_code: bool = Field(False, description="Run model code shipped with the checkpoint.")


class CheckpointOptions(RunOptions):
    """How a checkpoint is read, in float32, and what replaces its own declarations."""

    pooling: str | None = Field(
        None, description="Override the declared pooling: mean, cls, lasttoken, max, weightedmean."
    )
    max_length: Annotated[int | None, Option(metavar="N")] = Field(
        None, ge=1, description="Override the length limit, in tokens."
    )
    prompt: Annotated[str | None, Option(metavar="NAME|TEXT")] = Field(
        None,
        description="Prompt before every text, including queries and documents: the name of a declared prompt, or "
        "literal text ('query: '); '' for none.  [default: what the checkpoint declares]",
    )

    @property
    def load_options(self) -> LoadOptions:
        """The same for ``load_checkpoint``."""
        # It imports numpy, and this module is imported for every --help.
        from embaudit.checkpoint import AskedPrompts, LoadOptions

        return LoadOptions(
            self.device,
            "float32",
            self.pooling,
            self.max_length,
            self.allow_pickle,
            self.trust_remote_code,
            AskedPrompts(self.prompt),
        )


class PromptOptions(CheckpointOptions):
    """The same with prompts for queries and documents."""

    query_prompt: Annotated[str | None, Option(metavar="NAME|TEXT")] = Field(
        None, description="Prompt before queries instead, in measures with queries and documents."
    )
    document_prompt: Annotated[str | None, Option(metavar="NAME|TEXT")] = Field(
        None, description="Prompt before documents instead, in measures with queries and documents."
    )

    @property
    def load_options(self) -> LoadOptions:
        from embaudit.checkpoint import AskedPrompts

        prompts = AskedPrompts(self.prompt, self.query_prompt, self.document_prompt)
        return replace(super().load_options, prompts=prompts)


class Loading(PromptOptions):
    """The same with a precision: what an audit's request says of its checkpoint, and what every task is told."""

    dtype: Annotated[str, DTYPE] = "auto"

    @property
    def loading(self) -> dict[str, Any]:
        """These fields by name, without those of a class that has more."""
        return self.model_dump(include=set(Loading.model_fields))

    @property
    def asked_prompts(self) -> dict[str, str]:
        """The given prompts only, so that keys without prompts are as before prompts were supported."""
        return {name: given for name in PROMPTS if (given := getattr(self, name)) is not None}

    @property
    def load_options(self) -> LoadOptions:
        return replace(super().load_options, dtype=self.dtype)
