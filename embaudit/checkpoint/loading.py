"""How a checkpoint is loaded and run: what a request asks, and what every task is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from embaudit.checkpoint import LoadOptions

PROMPTS = ("prompt", "query_prompt", "document_prompt")


class Loading(BaseModel):
    """Device, precision, and what replaces the checkpoint's own declarations."""

    model_config = ConfigDict(frozen=True)

    device: str = Field(default="auto", description="Device: auto, cpu, cuda, cuda:1, mps.")
    dtype: str = Field(default="auto", description="Precision; auto is float32.")
    pooling: str | None = Field(
        default=None, description="Override the declared pooling: mean, cls, lasttoken, max, weightedmean."
    )
    max_length: int | None = Field(default=None, ge=1, description="Override the length limit, in tokens.")
    prompt: str | None = Field(
        default=None,
        description="Prompt before every text, including queries and documents: the name of a declared prompt, or "
        "literal text ('query: '); '' for none.  [default: what the checkpoint declares]",
    )
    query_prompt: str | None = Field(
        default=None, description="Prompt before queries instead, in measures with queries and documents."
    )
    document_prompt: str | None = Field(
        default=None, description="Prompt before documents instead, in measures with queries and documents."
    )
    allow_pickle: bool = Field(default=False, description="Read pickled weights, which can run arbitrary code.")
    trust_remote_code: bool = Field(default=False, description="Run model code shipped with the checkpoint.")

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
        """The same for ``load_checkpoint``."""
        # It imports numpy, and this module is imported for every --help.
        from embaudit.checkpoint import LoadOptions

        return LoadOptions.of(self)
