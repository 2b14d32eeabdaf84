"""Runs a few short texts when a checkpoint is loaded, so that failures occur there and not in the middle of an audit.

The same texts are run twice: in one padded batch with all that the tokenizer's own call gives, as sentence-transformers
does, and one by one from ids, as the measures do. If the vectors differ, the checkpoint is refused.

Models that compute otherwise from some length on are known by their settings: the short texts cannot show it.

What a model gets beside token ids: whatever the tokenizer would give it, for sequences built from ids.

sentence-transformers hands the model everything that the tokenizer's call returns. Measures build sequences of ids
themselves, so the rest (segment ids) is derived from where a token stands: among the special tokens before a text, in
the text, among those after it, or in the padding.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from embaudit.checkpoint.pooling import pool
from embaudit.checkpoint.tokenizer import without_own_padding
from embaudit.words.errors import CheckpointError, is_of_machine, one_line

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from embaudit.checkpoint.load import Checkpoint


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


# Of different length, so that the shorter one is padded; together shorter than any limit that leaves room for text.
SHORT, LONGER = "a", "a river of gold and iron by the old town"
# Unit vectors of the same text differ by rounding only: 1e-6 in float32, 1e-2 in half precision.
TOLERANCE = {"float32": 1e-4}
HALF_TOLERANCE = 5e-2
# Longer texts take time to tokenise; a limit beyond this is not tried.
LONGEST_TRIED = 10_000


def probe(checkpoint: Checkpoint) -> int:
    """D, the length of the served vector.

    Raises:
        CheckpointError: if the checkpoint cannot be run, or its tokenizer's call gives other ids or vectors.
    """
    require_same_ids(checkpoint)
    import torch

    try:
        with torch.inference_mode():
            alone = torch.cat([_alone(checkpoint, text) for text in (SHORT, LONGER)])
            padded = _padded(checkpoint)
    except CheckpointError:
        raise
    except Exception as error:  # any transformers model class may be involved
        if is_of_machine(error):
            raise
        raise CheckpointError(
            f"{checkpoint.resolved.ref} cannot be run as a text encoder ({type(checkpoint.model).__name__}, pooling "
            f"{'+'.join(checkpoint.recipe.pooling)}): {one_line(error)}",
            next_step="embaudit audits transformers that give one vector per token; check the pooling and its modules.",
        ) from error
    if padded is not None:
        _require_same_vectors(checkpoint, alone, padded)
    return int(alone.shape[1])


def require_same_ids(checkpoint: Checkpoint) -> None:
    """Compare ``Checkpoint.tokenize`` with the tokenizer's own call, which adds special tokens and truncates."""
    for kind in checkpoint.prompts:
        reading = checkpoint.reading(kind)
        room = reading.max_length
        texts = [SHORT, LONGER, *([f"{LONGER} " * (room // 8 + 2)] if room <= LONGEST_TRIED else [])]
        ours = reading.tokenize(texts)
        called = checkpoint.tokenizer(
            [reading.prompt.text + text for text in texts],
            padding=False,
            truncation=room <= LONGEST_TRIED,
            max_length=room if room <= LONGEST_TRIED else None,
            verbose=False,
            **checkpoint.recipe.call,
        )["input_ids"]
        for text, own, theirs in zip(texts, ours, called, strict=True):
            if list(theirs) != own:
                raise CheckpointError(
                    f"{checkpoint.resolved.ref}: its tokenizer gives {text[:20]!r}… other ids when it adds special "
                    "tokens and truncates by itself than when embaudit does.",
                    next_step="Report this with the tokenizer files: embaudit cannot audit what it reads differently.",
                )
        rows, most = checkpoint.vocabulary_size, max(max(ids, default=0) for ids in ours)
        if most >= rows:
            raise CheckpointError(
                f"{checkpoint.resolved.ref}: the tokenizer gives token {most}, but the model has embeddings for "
                f"{rows}.",
                next_step="Check that tokenizer and weights belong together.",
            )
    without_own_padding(checkpoint.tokenizer)


def _alone(checkpoint: Checkpoint, text: str) -> torch.Tensor:
    """(1, D): one text without padding, from its ids."""
    import torch

    ids = torch.tensor(checkpoint.tokenize([text]), device=checkpoint.model.device)
    mask = torch.ones_like(ids)
    return _pooled(checkpoint, checkpoint.model(**checkpoint.inputs(ids, mask)).last_hidden_state, mask)


def _padded(checkpoint: Checkpoint) -> torch.Tensor | None:
    """(2, D): both texts in one batch of the tokenizer's making; None if it cannot pad."""
    import torch

    tokenizer, model = checkpoint.tokenizer, checkpoint.model
    if tokenizer.pad_token_id is None or tokenizer.pad_token_id >= checkpoint.vocabulary_size:
        return None  # sentence-transformers cannot batch these either
    side = checkpoint.recipe.settings.call.get("padding_side")
    given = tokenizer(
        [checkpoint.prompt.text + text for text in (SHORT, LONGER)],
        padding=True,
        truncation=True,
        max_length=min(checkpoint.max_length, LONGEST_TRIED),
        return_tensors="pt",
        **({} if side is None else {"padding_side": side}),
        **checkpoint.recipe.call,
    )
    without_own_padding(tokenizer)
    inputs = {name: value.to(model.device) for name, value in given.items() if takes(model, name)}
    hidden, masks = model(**inputs).last_hidden_state, given["attention_mask"].to(model.device)
    # Padding may be on either side: keep what is attended.
    rows = [states[mask.bool()].unsqueeze(0) for states, mask in zip(hidden, masks, strict=True)]
    return torch.cat([_pooled(checkpoint, row, torch.ones(row.shape[:2], device=row.device)) for row in rows])


def _pooled(checkpoint: Checkpoint, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    pooled = pool(hidden, mask, checkpoint.recipe.pooling, checkpoint.prompt.unpooled)
    vectors: torch.Tensor = checkpoint.after_pooling(pooled)
    return vectors.float()


def _require_same_vectors(checkpoint: Checkpoint, alone: torch.Tensor, padded: torch.Tensor) -> None:
    from torch.nn.functional import normalize

    difference = float((normalize(alone, dim=1) - normalize(padded, dim=1)).abs().max())
    if difference > TOLERANCE.get(checkpoint.dtype, HALF_TOLERANCE):
        side = checkpoint.recipe.settings.call.get("padding_side", checkpoint.tokenizer.padding_side)
        raise CheckpointError(
            f"{checkpoint.resolved.ref} gives a text another vector when it is padded on the {side} in a batch (unit "
            f"vectors differ by {difference:.2g}): what is served depends on which texts come together.",
            next_step="Check padding_side in tokenizer_config.json: a model that counts positions from the first token "
            "needs padding on the right.",
        )


def refuse_switching(model: PreTrainedModel, limit: int, source: str) -> None:
    """Refuse a model whose vectors depend on the other texts: a batch of long texts, or an earlier short one.

    Raises:
        CheckpointError: if texts of up to ``limit`` tokens can be long enough for it.
    """
    sparse, rotary = _sparse_from(model), _rotary_from(model)
    if sparse is not None and limit > sparse:
        raise CheckpointError(
            f"{source} reads texts of more than {sparse} tokens with sparse attention, until a shorter one switches "
            "it to full attention for good (transformers' BigBird): a vector depends on what was encoded before.",
            next_step=f'Set "attention_type": "original_full" in config.json, or add --max-length {sparse}.',
        )
    if rotary is not None and limit > rotary:
        raise CheckpointError(
            f"{source} has other rotary positions for a whole batch if one of its texts has more than {rotary} tokens "
            "(rope_type dynamic or longrope): a vector depends on which texts come together.",
            next_step=f"Serve and audit it with shorter texts: --max-length {rotary}.",
        )


def _sparse_from(model: PreTrainedModel) -> int | None:
    """BigBird reads texts of up to this length with full attention."""
    config = model.config
    if getattr(config, "attention_type", None) != "block_sparse":
        return None
    return int((5 + 2 * config.num_random_blocks) * config.block_size)


def _rotary_from(model: PreTrainedModel) -> int | None:
    """The longest text with the original rotary positions; None if they are the same for all lengths."""
    lengths: list[int] = []
    for module in model.modules():
        types = getattr(module, "rope_type", None)
        config = getattr(module, "config", None)
        parameters = getattr(config, "rope_parameters", None) or {}
        # One of all layers, or one for each type of layer.
        by_layer = types.items() if isinstance(types, dict) else [("", types)]
        for layer, kind in by_layer:
            if kind == "longrope":
                own = (parameters[layer] if layer else parameters).get("original_max_position_embeddings")
                # transformers 4 has one setting for all layers, beside the others.
                lengths.append(own or getattr(config, "original_max_position_embeddings", module.original_max_seq_len))
            elif kind is not None and "dynamic" in kind:
                lengths.append(module.original_max_seq_len)
    return min(lengths, default=None)
