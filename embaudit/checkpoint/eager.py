"""Temporarily switches to the eager attention kernel, the only one that returns attention weights.

Used by ``sticky.evidence.attention`` and ``anatomy.watch``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from embaudit.checkpoint.model import quiet_transformers
from embaudit.words.errors import NotMeasurable, one_line

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# The kernel is a setting of the shared model: a second thread would restore it while the first is still using it.
_ONE_AT_A_TIME = threading.Lock()


@contextmanager
def eager_attention(model: PreTrainedModel) -> Iterator[None]:
    """Run a model with the eager kernel and restore the previous one afterwards.

    A model whose kernel is part of its class only warns and stays as it is (most encoders of transformers 4, and custom
    code): those of transformers leave their kernel for a call with ``output_attentions``. Whoever uses this looks at
    what comes back.

    Does not nest: a second use, even for another model, waits for the first to end.

    Raises:
        NotMeasurable: if the model refuses to switch kernels, or computes another function with the eager one.
    """
    with _ONE_AT_A_TIME:
        former = model.config._attn_implementation
        if former == "sdpa" and model.config.get_text_config().model_type == "gemma2":
            raise no_attention(
                model, "transformers 4 runs it without the soft-capping of its logits, which the eager kernel applies."
            )
        try:
            _switch_to_eager(model)
            yield
        finally:
            if model.config._attn_implementation != former:
                model.set_attn_implementation(former)
                # ModernBERT of transformers 4 switches its own config in such a call, and cannot be told to go back.
                model.config._attn_implementation = former


def no_attention(model: PreTrainedModel, reason: str) -> NotMeasurable:
    """The error for a model that does not return attention weights."""
    return NotMeasurable(
        f"{type(model).__name__} cannot return its attention weights: {reason}",
        kept="The other measures are unaffected.",
        next_step="Leave the attention measure out for this checkpoint.",
    )


def _switch_to_eager(model: PreTrainedModel) -> None:
    try:
        with quiet_transformers():
            model.set_attn_implementation("eager")
    except Exception as error:  # custom model code may raise anything
        raise no_attention(model, f"it cannot switch to the eager kernel: {one_line(error)}") from error
