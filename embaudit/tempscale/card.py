"""The note that a scaled checkpoint carries in its model card."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """What a reader of the scaled checkpoint has to know.

    Attributes:
        source: the checkpoint as typed.
        weights_sha256: of the source.
        tau: as a person reads it.
        divided: names of the divided tensors, in the files.
        is_bias_divided: whether the position bias was divided as well.
        offset: what the model adds to a divided gain before it counts (Gemma: 1).
    """

    source: str
    weights_sha256: str
    tau: str
    divided: tuple[str, ...]
    is_bias_divided: bool
    offset: float
    version: str


def section(note: Note) -> str:
    """The note as a section of a model card."""
    gain = f"; of gains w, w + {note.offset:g} was divided" if note.offset else ""
    undo = f"w becomes (w + {note.offset:g})·τ − {note.offset:g}" if note.offset else "multiply the same numbers by τ"
    bias = " The position bias was divided as well, as in the paper's code." if note.is_bias_divided else ""
    names = "\n".join(f"- `{name}`" for name in note.divided)
    return f"""## Attention temperature

The weights of `{note.source}` (sha256 `{note.weights_sha256}`)
with one change, made by embaudit {note.version}: attention is softmax(QKᵀ/(τ√d)) with **τ = {note.tau}**.
Nothing was trained.{bias}

In the tensors below the numbers that make queries were divided by τ{gain}. All else is the source's, byte for byte, and
so are the figures above. To undo it: {undo}.

<details><summary>{len(note.divided)} tensors</summary>

{names}

</details>
"""
