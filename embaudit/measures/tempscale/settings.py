"""Settings of the question whether a lower attention temperature helps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field, ValidationError, field_validator

from embaudit.errors import UsageError
from embaudit.measures.measure import MeasureSettings
from embaudit.toml import complaint

if TYPE_CHECKING:
    from embaudit.request import AuditSettings


class TempscaleSettings(MeasureSettings):
    """Settings of the question whether a lower attention temperature helps."""

    corpora: tuple[Literal["longdocs", "retrieval", "sts"], ...] = Field(
        default=("longdocs", "retrieval", "sts"),
        description="labelled texts, a collection with judged queries, scored pairs",
    )
    grid: tuple[float, ...] = Field(
        default=(1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5), min_length=1, description="τ; 1 is always among them"
    )
    texts: int = Field(default=1_000, ge=4, description="labelled texts")
    documents: int = Field(default=1_200, ge=2, description="of the collection: relevant ones first")
    queries: int = Field(default=300, ge=4)
    pairs: int = Field(default=1_000, ge=4, description="scored pairs")
    folds: int = Field(default=5, ge=2, description="of the cross-validation, in each half")
    neighbours: int = Field(default=5, ge=1, description="k of the nearest neighbours")
    reads: Literal["limit", "positions"] = Field(
        default="limit", description="documents up to the configured limit, as served, or up to the position table"
    )
    resamples: int = Field(default=1_000, ge=100, description="of the paired bootstrap")

    @field_validator("grid")
    @classmethod
    def _every_temperature_is_positive(cls, grid: tuple[float, ...]) -> tuple[float, ...]:
        if any(not 0 < tau < float("inf") for tau in grid):
            raise ValueError(f"a temperature divides the logits and must be above 0, and these are {list(grid)}")
        return tuple(sorted({1.0, *grid}, reverse=True))

    def requested(self, request: AuditSettings) -> TempscaleSettings:
        try:
            return TempscaleSettings.model_validate({**self.model_dump(), **(request.temperatures or {})})
        except ValidationError as error:
            first = complaint(dict(error.errors()[0]), TempscaleSettings)
            raise UsageError(f"The temperatures do not fit: {first}.") from error
