"""Integrity: where the tensors of the loaded model come from; the table ``finding`` has what the checks conclude."""

from __future__ import annotations

from typing import Literal

from embaudit.declared.table import Row, Series, column, rule

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
