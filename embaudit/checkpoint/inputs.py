"""What a model gets beside token ids: whatever the tokenizer would give it, for sequences built from ids.

sentence-transformers hands the model everything that the tokenizer's call returns. Measures build sequences of ids
themselves, so the rest (segment ids) is derived from where a token stands: among the special tokens before a text, in
the text, among those after it, or in the padding.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from embaudit.words.errors import CheckpointError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

DERIVED = ("input_ids", "attention_mask", "token_type_ids")


@dataclass(frozen=True)
class SegmentIds:
    """The segment ids (``token_type_ids``) of a text's tokens, as the tokenizer gives them."""

    before: tuple[int, ...]
    text: int
    after: tuple[int, ...]
    padding: int

    def of(self, mask: torch.Tensor) -> torch.Tensor:
        """(B, n) segment ids for sequences padded on the right, from their mask (B, n)."""
        import torch

        lengths = mask.sum(1)
        places = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
        found = torch.full_like(mask, self.text)
        for place, segment in enumerate(self.before):
            found[:, place] = segment
        for place, segment in enumerate(reversed(self.after), start=1):
            found[places == (lengths - place).unsqueeze(1)] = segment
        return found.masked_fill(mask == 0, self.padding)


def segment_ids(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    call: Mapping[str, Any],
    around: tuple[Sequence[int], Sequence[int]],
    source: str,
) -> SegmentIds | None:
    """The segment ids that the tokenizer gives and the model takes; None if there are none.

    Args:
        call: further arguments of the tokenizer's call.
        around: the special tokens before and after a text.

    Raises:
        CheckpointError: if the tokenizer gives something else that the model takes, no mask, or segment ids that do not
            follow from a token's place.
    """
    given = tokenizer("a a a a", truncation=False, padding=False, **call)
    others = [name for name in given if name not in DERIVED and takes(model, name)]
    if others:
        raise CheckpointError(
            f"{source}: its tokenizer gives {others[0]}, which embaudit cannot give to sequences of tokens.",
            next_step="embaudit audits checkpoints whose model reads token ids, a mask and segment ids.",
        )
    if "attention_mask" not in given:
        raise CheckpointError(
            f"{source}: its tokenizer gives no attention mask, so padding counts as text and a text's vector depends "
            "on its batch.",
            next_step='Add "attention_mask" to model_input_names in tokenizer_config.json if the model reads a mask.',
        )
    if "token_type_ids" not in given or not takes(model, "token_type_ids"):
        return None
    segments = list(given["token_type_ids"])
    before, after = len(around[0]), len(around[1])
    inside = set(segments[before : len(segments) - after])
    if len(inside) > 1:
        raise CheckpointError(
            f"{source}: its tokenizer gives the tokens of one text different segment ids ({sorted(inside)}).",
            next_step="embaudit audits checkpoints that read a text as one segment.",
        )
    return SegmentIds(
        tuple(segments[:before]),
        inside.pop() if inside else 0,
        tuple(segments[len(segments) - after :]),
        int(tokenizer.pad_token_type_id),
    )


def takes(model: PreTrainedModel, name: str) -> bool:
    """Whether sentence-transformers would pass an output of the tokenizer to the model: by name, or as one of any."""
    parameters = inspect.signature(model.forward).parameters
    return name in parameters or any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
