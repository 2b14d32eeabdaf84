"""Integrity: is this the network that was trained, and does it compute one function of a text?

``integrity`` checks files, weights and tokenizer, ``function`` and ``numerics`` encode a few hard texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from embaudit.declared.table import Row, Series, column, rule
from embaudit.measures.measure import Measure, MeasureSettings, Readable, Work, parts_of

# Texts that function and numerics encode, about; and reading all files once more takes a core this long per GB.
TEXTS, TOKENS, SECONDS = 70, 30, 4.0


class IntegritySettings(MeasureSettings):
    """It reads the checkpoint and a fixed table of hard texts."""

    def work(self, readable: Readable) -> Iterator[Work]:
        yield Work(TEXTS, min(TOKENS, readable.max_length), core_seconds=SECONDS, runs_in="float32")


# What the checks found is passed on in this table, which is not published.
STAGED = "integrity_finding"
# Findings after which a comparison of readings would mislead: the ids are wrong.
TOKENIZER = (
    # Ids of another class than tokenizer.json's explain what is lost of case, accents and words.
    *("tokenizer_ids", "unknown_words", "letter_case", "lower_casing", "accents", "shared_ids", "unused_pieces"),
    *("unread_scripts", "ids_beyond_rows", "special_tokens", "vocabulary_fit"),
)
Status = Literal["same", "cast", "renamed", "converted", "tied", "unused", "missing", "changed", "unread"]


class WeightRow(Row, table="weight", key=("tensor",)):
    """The load certificate: where each tensor of the loaded model, or left over in a file, comes from."""

    tensor: str = column("Its name in the loaded model; FILE: NAME if nothing reads it.")
    layer: int | None = column("The first number in its name, most often the layer's; null without one.", ge=0)
    status: Status = column(
        "same: the file's bytes; cast: equal in the loaded precision; renamed: equal, under another name in the file; "
        "converted: made of several tensors of the file; tied: one memory with another; unused: in no file, and no "
        "vector depends on it; missing: in no file; changed: not the file's values; unread: nothing in the model is "
        "made of it."
    )
    file: str | None = column("File that it is in, relative to the checkpoint's folder.")
    stored_name: str | None = column("Its name in that file.")
    stored_dtype: str | None = column("Its data type in that file, as in safetensors: F32, BF16 …")
    shape: str = column("Its dimensions, such as 384 × 1536; empty for a single number.")
    entries: int = column("Number of its values.", ge=0)
    deviation: float | None = column("Standard deviation of its values; null if nothing reads it, or not finite.", ge=0)
    largest: float | None = column("Largest absolute value; null if nothing reads it, or not finite.", ge=0)
    content: str | None = column(
        "BLAKE2b hash of its values in float32, 16 hex digits: equal in two audits if the tensor did not change; null "
        "if nothing reads it."
    )

    @rule
    def read_tensors_have_values(status: Series, file: Series) -> Series:
        """What the file holds, or was compared with, names the file."""
        return ~status.isin(["same", "cast", "renamed", "changed", "unread"]) | file.notna()


ROWS: tuple[type[Row], ...] = (WeightRow,)

MEASURE_VERSION = 2

MEASURE = Measure(
    name="integrity",
    package=__name__,
    question="Is this the network that was trained, and does it compute one function of a text?",
    parts=parts_of(__name__),
    settings=IntegritySettings,
    version=MEASURE_VERSION,
    rows=ROWS,
)
