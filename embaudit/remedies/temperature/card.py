"""The section that a scaled checkpoint has in its model card."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """What users of the scaled checkpoint need to know.

    Attributes:
        source: the checkpoint as the user named it.
        weights_sha256: hash of the source's weights.
        tau: the temperatures in readable form.
        divided: names of the scaled tensors in the files.
        is_bias_divided: whether the position bias was divided, too.
        offset: what the model adds to a stored gain before using it (Gemma: 1).
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
    gain = f" (for gains w, w + {note.offset:g} was divided)" if note.offset else ""
    undo = f"w becomes (w + {note.offset:g})·τ − {note.offset:g}" if note.offset else "multiply the same values by τ"
    bias = " The position bias was divided, too, as in the paper's code." if note.is_bias_divided else ""
    names = "\n".join(f"- `{name}`" for name in note.divided)
    return f"""## Attention temperature

The weights of `{note.source}` (sha256 `{note.weights_sha256}`)
with one change, made by embaudit {note.version}: attention is softmax(QKᵀ/(τ√d)) with **τ = {note.tau}**.
Nothing was trained.{bias}

In the tensors below, the values that produce queries were divided by τ{gain}. Everything else is identical to the
source, byte for byte; the figures above are those of the source. To undo the change: {undo}.

<details><summary>{len(note.divided)} tensors</summary>

{names}

</details>
"""
