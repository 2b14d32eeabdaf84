"""Screening of texts for severe tokens, outside the warehouse, where texts are ingested.

The severe tokens of one audit are a JSON file, which is read and written here; ``density`` and ``screen`` find them in
texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from embaudit.system.small_files import small_bytes
from embaudit.words.errors import UsageError

Severity = Literal["strong", "moderate", "weak"]
# Worst first; a list of moderate tokens includes the strong ones.
SEVERITIES: tuple[Severity, ...] = ("strong", "moderate", "weak")


class SevereToken(BaseModel):
    """One token.

    Attributes:
        token: as written in the vocabulary (``##ing``).
        text: the decoded id.
        is_reachable: whether some text produces the id; others cannot occur in a text.
        loss: share of a pair's own similarity that ``copies`` of it erase, with its 95 % interval.
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
    """The severe tokens of a checkpoint, worst first, with the hash that identifies their tokenizer.

    Attributes:
        checkpoint: name under which it was audited.
        max_length: longest input in tokens, prompt and special tokens included.
        severity: lowest severity on the list.
        copies: number inserted into a sentence when measuring loss.
        validated: number of tokens that the audit validated; others are not on the list, however bad they are.
        estimated: number of tokens in the vocabulary of at least this severity, estimated from a random sample.
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
        """The file's content; in ASCII for a terminal, since tokens may contain control characters."""
        return json.dumps(self.model_dump(), indent=1, ensure_ascii=is_ascii, allow_nan=False)

    def at_least(self, severity: Severity) -> Self:
        """The list without less severe tokens; it cannot be extended to tokens that it does not contain."""
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
        """Loss by id of the reachable tokens; clipped at 0, since measured losses are noisy."""
        return {one.token_id: max(one.loss, 0.0) for one in self.tokens if one.is_reachable}


def severe_rows(verdicts: Iterable[Mapping[str, Any]], severity: Severity) -> list[Mapping[str, Any]]:
    """Rows of ``sticky_validation`` for tokens of at least this severity, worst first."""
    kept = SEVERITIES[: SEVERITIES.index(severity) + 1]
    found = [
        row
        for row in verdicts
        if row["role"] == "candidate" and row["protocol"] == "retention" and row["severity"] in kept
    ]
    return sorted(found, key=lambda row: (-row["loss"], row["token_id"]))


def read_token_list(path: Path) -> TokenList:
    """Read a list written by ``embaudit filter``.

    Raises:
        UsageError: if the file cannot be read or is not such a list.
    """
    make_one = "Make one: embaudit filter CHECKPOINT --out FILE"
    try:
        return TokenList.model_validate_json(small_bytes(path))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.", next_step=make_one) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"{path} is not a list of tokens: {f'{place}: ' if place else ''}{first['msg']}.", next_step=make_one
        ) from error
