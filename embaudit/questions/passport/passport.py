"""The format of a passport, version 1 (docs/passport.md). Its JSON Schema is made from these classes.

Reads and writes passports. A file that this version cannot read, or that somebody changed, is named as such.

``python -m embaudit.questions.passport.passport`` prints the JSON Schema of a passport.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from embaudit.questions.parity.compare import HALF, ROLES, SAME, SAME_LENGTH
from embaudit.questions.parity.requested import first_of_rows
from embaudit.system.files import replace_atomically
from embaudit.system.small_files import parsed, small_bytes
from embaudit.words.errors import StorageError, UsageError, one_line

FORMAT: Final = "embaudit passport"
# Increased when a key changes its meaning or goes. A reader skips keys that it does not know.
VERSION: Final = 1
CHECKSUM = "checksum"
AS_DOCUMENTS = "as documents"


class PassportPart(BaseModel):
    # What is written has every key, whether it has a default or not.
    model_config = ConfigDict(frozen=True, json_schema_serialization_defaults_required=True)


class PassedCheckpoint(PassportPart):
    """Which files the vectors were made with; hashes are empty of a function whose files nobody sees."""

    id: str = Field(
        description="embaudit's id of the content: weights, tokenizer, settings, modules, prompts; empty if not known."
    )
    source: str = Field(description="What it was called: packaged:NAME, a folder, owner/name@revision, or an address.")
    revision: str | None = Field(description="The commit on the hub.")
    weights_sha256: str
    tokenizer_sha256: str
    config_sha256: str
    modules_sha256: str
    architecture: str


class PassedPrompts(PassportPart):
    """What the checkpoint puts before a text, a query, a document; empty for nothing."""

    text: str = Field(description="It stands before the canaries, too, and is not part of their texts.")
    query: str
    document: str


class PassedReading(PassportPart):
    """How a text becomes a vector."""

    dimension: int = Field(ge=1)
    is_normalised: bool = Field(description="Whether every canary's vector has length 1.")
    pooling: str
    modules: tuple[str, ...] = Field(description="After pooling, in order.")
    max_length: int | None = Field(description="Tokens read of a text, special ones and prompt included; null: all.")
    prompts: PassedPrompts
    pools_prompt: bool = Field(description="Whether pooling reads the prompt's tokens.")
    counted_in: Literal["tokens", "words"] = Field(
        default="tokens", description="What the canaries' lengths are counted in; words where no tokenizer is at hand."
    )


class PassedSettings(PassportPart):
    """What was asked for in place of what the checkpoint declares; null: as declared."""

    pooling: str | None = None
    max_length: int | None = None
    prompt: str | None = None


class Tolerances(PassportPart):
    """How far vectors of the same function may be apart."""

    same: float = Field(default=SAME, gt=0, description="1 − cosine up to here is rounding in float32.")
    half_precision: float = Field(
        default=HALF, gt=0, description="Up to here, on all kinds by about as much, it is rounding in half precision."
    )
    length: float = Field(default=SAME_LENGTH, gt=0, description="Of a vector's length, relative to the canary's.")


class Canary(PassportPart):
    """One text and its vector."""

    kind: str = Field(description="Those “as queries” and “as documents” are asked for as such, others as texts.")
    text: str
    purpose: str = Field(description="What breaks on this text.")
    tokens: int = Field(ge=0, description="As many tokens, or words, as would be read if nothing were cut.")
    vector: str = Field(description="Base64 of float32 in little-endian order.", pattern=r"^[A-Za-z0-9+/]+=*$")

    @property
    def numbers(self) -> np.ndarray:
        """(D,) float64."""
        return np.frombuffer(base64.b64decode(self.vector), dtype="<f4").astype(np.float64)


class PromptNotPicked(PassportPart):
    """A prompt that is declared under a name which nothing looks for, and canaries with it: a client may put it."""

    role: Literal["query", "document"]
    name: str = Field(description="Under which config_sentence_transformers.json declares it.")
    prompt: str
    canaries: tuple[Canary, ...] = Field(min_length=1)


class Passport(PassportPart):
    """Canary texts of one checkpoint, with their vectors."""

    format: Literal["embaudit passport"] = FORMAT
    version: Literal[1] = VERSION
    made_with: dict[str, str] = Field(description="Versions of embaudit, torch and transformers.")
    checkpoint: PassedCheckpoint
    reading: PassedReading
    settings: PassedSettings
    tolerances: Tolerances
    canaries: tuple[Canary, ...] = Field(min_length=1)
    not_picked: tuple[PromptNotPicked, ...] = Field(default=(), description="Empty in passports of older versions.")

    @model_validator(mode="after")
    def _require_vectors(self) -> Self:
        """Every vector has the declared dimension, is finite and not zero."""
        more = [canary for one in self.not_picked for canary in one.canaries]
        for place, canary in enumerate([*self.canaries, *more]):
            try:
                numbers = canary.numbers
            except ValueError as error:
                raise ValueError(f"the vector of canary {place} is no base64 of float32") from error
            if len(numbers) != self.reading.dimension:
                raise ValueError(f"canary {place} has {len(numbers)} numbers and not {self.reading.dimension}")
            if not np.isfinite(numbers).all() or not numbers.any():
                raise ValueError(f"the vector of canary {place} has NaN or is zero")
        return self

    def without(self, kinds: Collection[str]) -> Passport:
        """The passport without the canaries of some kinds."""
        return self.model_copy(update={"canaries": tuple(one for one in self.canaries if one.kind not in kinds)})

    def cut_to(self, dimensions: int) -> Passport:
        """The passport of the first so many dimensions, normalised again; itself if it has no more."""
        if dimensions >= self.reading.dimension:
            return self
        reading = self.reading.model_copy(update={"dimension": dimensions})
        not_picked = (one.model_copy(update={"canaries": _cut(one.canaries, dimensions)}) for one in self.not_picked)
        canaries = _cut(self.canaries, dimensions)
        return self.model_copy(update={"canaries": canaries, "reading": reading, "not_picked": tuple(not_picked)})

    @property
    def takes_texts_as_documents(self) -> bool:
        """Whether every text that is a canary as a document, too, has the same vector so."""
        known = {one.text: one.vector for one in self.canaries if one.kind not in ROLES}
        documents = [one for one in self.canaries if one.kind == AS_DOCUMENTS and one.text in known]
        return bool(documents) and all(one.vector == known[one.text] for one in documents)

    def of_documents(self) -> Passport:
        """The passport with documents in place of texts that are neither query nor document, by their own kinds."""
        kinds = {one.text: one.kind for one in self.canaries if one.kind not in ROLES}
        documents = [
            one.model_copy(update={"kind": kinds[one.text]})
            for one in self.canaries
            if one.kind == AS_DOCUMENTS and one.text in kinds
        ]
        others = [one for one in self.canaries if one.kind in ROLES and one.kind != AS_DOCUMENTS]
        return self.model_copy(update={"canaries": (*documents, *others)})

    @property
    def has_roles(self) -> bool:
        """Whether some canaries are asked for as queries, or as documents."""
        return not ROLES.keys().isdisjoint(self.kinds)

    @property
    def takes_all_alike(self) -> bool:
        """Whether it is a checkpoint's that puts the same before queries and documents as before texts."""
        prompts = self.reading.prompts
        return bool(self.checkpoint.weights_sha256) and prompts.text == prompts.query == prompts.document

    @property
    def kinds(self) -> dict[str, list[Canary]]:
        found: dict[str, list[Canary]] = {}
        for canary in self.canaries:
            found.setdefault(canary.kind, []).append(canary)
        return found

    def as_json(self) -> dict[str, Any]:
        """What is written: the content, and its checksum."""
        content = self.model_dump(mode="json")
        return {**content, CHECKSUM: checksum_of(content)}


def _cut(canaries: Sequence[Canary], dimensions: int) -> tuple[Canary, ...]:
    rows = first_of_rows(np.array([one.numbers for one in canaries]), dimensions)
    return tuple(one.model_copy(update={"vector": as_base64(row)}) for one, row in zip(canaries, rows, strict=True))


def checksum_of(content: Mapping[str, Any]) -> str:
    """sha256 of the content without its checksum, as JSON in ASCII with sorted keys and no spaces."""
    rest = {key: value for key, value in content.items() if key != CHECKSUM}
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(canonical.encode('ascii')).hexdigest()}"


def as_base64(row: np.ndarray) -> str:
    return base64.b64encode(np.asarray(row).astype("<f4").tobytes()).decode("ascii")


AGAIN = "Make it again: embaudit passport CHECKPOINT --out FILE"


def read_passport(path: Path) -> Passport:
    """A passport's content.

    Raises:
        UsageError: if the file is none, is of a newer version, or was changed after it was made.
    """
    try:
        content = parsed(small_bytes(path))
    except OSError as error:
        raise UsageError(f"Cannot read the passport {path}: {one_line(error)}", next_step="Check the path.") from error
    except ValueError as error:
        raise UsageError(f"{path} is no passport: it is not JSON ({one_line(error)})", next_step=AGAIN) from error
    return _passport(content, path)


def _passport(content: Any, path: Path) -> Passport:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UsageError(f'{path} is no passport: its "format" is not "{FORMAT}".', next_step=AGAIN)
    version = content.get("version")
    if not isinstance(version, int) or version < 1:
        raise UsageError(f'{path} is damaged: its "version" is {json.dumps(version)}.', next_step=AGAIN)
    if version > VERSION:
        made_by = content.get("made_with")
        by = f" (embaudit {made_by['embaudit']})" if isinstance(made_by, dict) and "embaudit" in made_by else ""
        raise UsageError(
            f"{path} is a passport of version {version}, written by a newer embaudit{by}; this one reads version "
            f"{VERSION}.",
            next_step="Upgrade embaudit: pip install --upgrade embaudit",
        )
    if content.get(CHECKSUM) != checksum_of(content):
        what = "has no checksum" if CHECKSUM not in content else "was changed after it was made: its checksum differs"
        raise UsageError(f"{path} {what}.", kept="Nothing was compared.", next_step=AGAIN)
    try:
        return Passport.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        said = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"{path} is damaged: {where + ': ' if where else ''}{said}.", next_step=AGAIN) from error


def write_passport(passport: Passport, path: Path) -> None:
    """Write a passport to a file that is complete or absent; one of the same checkpoint is replaced.

    Raises:
        UsageError: if the file is something else.
        StorageError: if it cannot be written.
    """
    refuse_other_file(path, passport.checkpoint)
    try:
        with replace_atomically(path) as partial:
            partial.write_text(json.dumps(passport.as_json(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"Cannot write the passport {path}: {one_line(error)}",
            kept="Nothing was changed.",
            next_step="Free some space, or choose another file: --out FILE",
        ) from error


def refuse_other_file(path: Path, own: PassedCheckpoint | None = None) -> None:
    """Refuse to replace what is no passport, or that of another checkpoint: an index may have been built by it.

    Args:
        own: what the passport is to be of; None if that is not known yet.

    Raises:
        UsageError: if that is what the file is.
    """
    if not path.exists():
        return
    try:
        existing = read_passport(path)
    except UsageError as error:
        raise UsageError(
            f"{path} exists, and would be lost: {error.happened}",
            kept="It is unchanged.",
            next_step="Choose another file: --out FILE, or delete this one.",
        ) from error
    # A function without an id is known by its name alone.
    if own is not None and (own.id, own.id or own.source) != (
        existing.checkpoint.id,
        existing.checkpoint.id or existing.checkpoint.source,
    ):
        raise UsageError(
            f"{path} is the passport of another checkpoint, or of one that is read otherwise: "
            f"{', '.join(filter(None, (existing.checkpoint.id, existing.checkpoint.source)))}.",
            kept="It is unchanged.",
            next_step="Choose another file: --out FILE, or delete this one.",
        )


DRAFT = "https://json-schema.org/draft/2020-12/schema"


def passport_schema() -> dict[str, Any]:
    """The schema of a passport as it is written: with every key, and a checksum."""
    schema = Passport.model_json_schema(mode="serialization")
    schema["properties"][CHECKSUM] = {
        "type": "string",
        "pattern": "^sha256:[0-9a-f]{64}$",
        "description": "sha256 of the content without this key, as JSON in ASCII with sorted keys and no spaces.",
    }
    return {"$schema": DRAFT, **schema, "required": [*schema["required"], CHECKSUM]}


if __name__ == "__main__":
    print(json.dumps(passport_schema(), indent=1, ensure_ascii=False))
