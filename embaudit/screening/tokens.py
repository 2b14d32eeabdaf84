"""The severe tokens of one audit as a list that leaves the warehouse: a JSON file for whoever ingests texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from embaudit.errors import UsageError

Severity = Literal["strong", "moderate", "weak"]
# From the worst on: a list of moderate tokens has the strong ones too.
SEVERITIES: tuple[Severity, ...] = ("strong", "moderate", "weak")


class SevereToken(BaseModel):
    """One token.

    Attributes:
        token: as written in the vocabulary (``##ing``).
        text: what the id decodes to.
        is_reachable: whether any text produces the id; others cannot be met in a text.
        loss: share of a pair's own similarity that ``copies`` of it take away, with its 95 % interval.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    token_id: int = Field(ge=0)
    token: str
    text: str
    is_reachable: bool
    loss: float = Field(allow_inf_nan=False)
    loss_low: float | None = None
    loss_high: float | None = None
    severity: Severity


class TokenList(BaseModel):
    """The severe tokens of a checkpoint, the worst first, and what tells that a tokenizer is the one they are of.

    Attributes:
        checkpoint: what it was called when it was audited.
        max_length: tokens that it reads of a text, prompt and special tokens included.
        severity: all tokens are at least so severe.
        copies: that were inserted into a sentence when loss was measured.
        validated: tokens that the audit looked at closely: those beyond are not on the list, however bad they are.
        estimated: how many tokens of the vocabulary are at least so severe, from a random sample.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    version: Literal[1] = 1
    checkpoint: str
    checkpoint_id: str
    tokenizer_sha256: str
    max_length: int = Field(ge=1)
    prompt: str = ""
    audit_id: str
    severity: Severity
    copies: int | None = None
    validated: int
    estimated: float | None = None
    estimated_low: float | None = None
    estimated_high: float | None = None
    tokens: tuple[SevereToken, ...]

    def as_json(self, *, is_ascii: bool) -> str:
        """The file; in ASCII for a terminal, which would obey some of the signs that tokens are made of."""
        return json.dumps(self.model_dump(), indent=1, ensure_ascii=is_ascii, allow_nan=False)

    def at_least(self, severity: Severity) -> Self:
        """The list without tokens that are less severe; what it never held is not there to be chosen."""
        if SEVERITIES.index(severity) >= SEVERITIES.index(self.severity):
            return self
        kept = SEVERITIES[: SEVERITIES.index(severity) + 1]
        return self.model_copy(
            update={
                "tokens": tuple(one for one in self.tokens if one.severity in kept),
                "severity": severity,
                **dict.fromkeys(("estimated", "estimated_low", "estimated_high")),
            }
        )

    @property
    def unreachable(self) -> list[SevereToken]:
        """Tokens that no text can produce."""
        return [one for one in self.tokens if not one.is_reachable]

    @property
    def losses(self) -> dict[int, float]:
        """Loss by id of the tokens that a text can hold; above nothing, since a measured loss has noise."""
        return {one.token_id: max(one.loss, 0.0) for one in self.tokens if one.is_reachable}


def severe_rows(verdicts: Iterable[Mapping[str, Any]], severity: Severity) -> list[Mapping[str, Any]]:
    """Rows of ``sticky_validation`` of the tokens that are at least so severe, the worst first."""
    kept = SEVERITIES[: SEVERITIES.index(severity) + 1]
    found = [
        row
        for row in verdicts
        if row["role"] == "candidate" and row["protocol"] == "retention" and row["severity"] in kept
    ]
    return sorted(found, key=lambda row: (-row["loss"], row["token_id"]))


def read_token_list(path: Path) -> TokenList:
    """The list that ``embaudit filter`` wrote.

    Raises:
        UsageError: if the file cannot be read or is no such list.
    """
    make_one = "Make one: embaudit filter CHECKPOINT --out FILE"
    try:
        return TokenList.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.", next_step=make_one) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"{path} is no list of tokens: {f'{place}: ' if place else ''}{first['msg']}.", next_step=make_one
        ) from error
