"""Whether a checkpoint computes one function of a text: in any batch, every time, of all its tokens and no others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.checkpoint.agreement import KINDS, long_text
from embaudit.checkpoint.tokenizer import NO_LIMIT
from embaudit.corpora.downstream import unit_rows
from embaudit.declared.rule import Finding, Rule, number
from embaudit.measures.integrity.numerics import HardTexts

if TYPE_CHECKING:
    import torch

# 1 − cosine of one text's vectors: float32 rounding stays below the first, another function is beyond the second.
ROUNDING, ANOTHER = 1e-5, 1e-3
# Kinds whose texts may be one text after normalisation.
NOT_DISTINCT = ("blank", "empty", "control characters", "spaces", "accents")
# Distinct vectors of distinct texts; a collapsed but trained checkpoint stays clearly below.
SAME_COSINE = 1 - 1e-6
# Of a token that is not read: rows of a batch, and the last bits of a sum, differ by less; of 1 024, one moves more.
UNMOVED = 1e-12
# The longest limit at which a text is encoded to see whether its last token counts.
LONGEST_TRIED = 1_024
ONE_FUNCTION = Rule(
    "one_function",
    look_if=f"1 − cosine above {number(ROUNDING)} between a text alone and in a batch, or again after another text",
    problem_if=f"above {number(ANOTHER)}",
    reason="float32 rounding stays below 1e-6",
)
SAME_VECTOR = Rule(
    "same_vector",
    problem_if="distinct texts with distinct ids share a vector",
    reason="a search cannot tell them apart; a collapsed but trained checkpoint stays clearly below",
)
CAUSAL_ATTENTION = Rule(
    "causal_attention",
    problem_if="cls pooling of a causal model; an encoder family run as a decoder",
    reason="only the last token has read the text",
)
NO_END_TOKEN = Rule(
    "no_end_token",
    look_if="last-token pooling without an end token",
    reason="such checkpoints are usually trained with one",
)
TAIL = Rule(
    "tail",
    look_if="the last token inside the limit does not move the vector",
    reason=f"the end of a long text is not read. `not measured` above {number(LONGEST_TRIED)} tokens",
)


def function_findings(encoder: Encoder, hard: HardTexts | None = None) -> list[Finding]:
    """Batches and repetition, texts with one vector, direction of attention, the end of a long text."""
    return [
        _one_function(encoder),
        _distinct(hard or HardTexts(encoder)),
        *_direction(encoder.checkpoint),
        *_tail(encoder),
    ]


def _one_function(encoder: Encoder) -> Finding:
    """1 − cos between a text alone and the same text in batches of mixed and equal length, and after another text."""
    texts = [*KINDS["plain"], KINDS["capitals"][0], KINDS["one token"][0], long_text(90)]
    sequences = [ids for ids in encoder.tokenize(texts) if ids]
    alone = np.concatenate([encoder.encode_ids([ids]) for ids in sequences])
    other = {
        "in a batch of mixed length": encoder.encode_ids(sequences),
        "in a batch of its own length": np.concatenate([encoder.encode_ids([ids, ids])[1:] for ids in sequences]),
        "a second time, after another text": np.concatenate([encoder.encode_ids([ids]) for ids in sequences[::-1]])[
            ::-1
        ],
    }
    worst, how = max((float(_distance(alone, vectors).max()), how) for how, vectors in other.items())
    if worst <= ROUNDING:
        return ONE_FUNCTION.finding(
            "ok", f"A text gets one vector alone, padded, and again (1 − cosine at most {worst:.1e}).", value=worst
        )
    return ONE_FUNCTION.finding(
        "problem" if worst > ANOTHER else "look",
        f"A text encoded {how} gets another vector than alone (1 − cosine {worst:.2g}).",
        "What is stored then depends on which texts come together, and a query never meets the same vector again.",
        "Look for dropout or randomness in its code, a missing attention mask, or padding that is read.",
        value=worst,
    )


def _distinct(hard: HardTexts) -> Finding:
    """Distinct texts with distinct ids whose vectors are equal."""
    differ = set(texts_that_differ())
    places = {
        tuple(ids): place for place, (text, ids) in enumerate(zip(hard.texts, hard.ids, strict=True)) if text in differ
    }
    return distinct_finding([hard.texts[place] for place in places.values()], hard.vectors[list(places.values())])


def texts_that_differ() -> list[str]:
    """Texts that are no less distinct after normalisation."""
    return [text for kind, some in KINDS.items() if kind not in NOT_DISTINCT for text in some]


def distinct_finding(texts: Sequence[str], vectors: np.ndarray) -> Finding:
    """Distinct texts whose (N, D) vectors are equal."""
    rows = unit_rows(vectors)
    same = np.argwhere(np.triu(rows @ rows.T > SAME_COSINE, 1))
    if not len(same):
        return SAME_VECTOR.finding("ok", f"{len(texts)} distinct texts get distinct vectors.", value=0.0)
    first, second = (texts[place] for place in same[0])
    return SAME_VECTOR.finding(
        "problem",
        f"{len(same)} pairs of {len(texts)} distinct texts share one vector, {first!r} and {second!r} first.",
        "A search cannot tell them apart.",
        "The network ignores its input: look at weights and pooling.",
        value=float(len(same)),
    )


def _direction(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Whether the first state knows the last token, and whether pooling and family expect it to."""
    import torch

    content = checkpoint.own_ids([KINDS["plain"][1]])[0][: max(min(checkpoint.content_limit, 12), 0)]
    if len(content) < 3:
        return
    changed = [*content[:-1], content[0] if content[-1] != content[0] else content[1]]
    with torch.inference_mode():
        first, other = (_states(checkpoint, checkpoint.with_special_tokens(ids)) for ids in (content, changed))
    moved = float((first[0] - other[0]).abs().max() / first[0].abs().max().clamp(min=1e-30))
    is_causal = moved < 1e-6
    config = checkpoint.model.config
    runs_as_decoder = bool(getattr(config, "is_decoder", False)) and not _is_decoder_family(checkpoint)
    if is_causal and "cls" in checkpoint.recipe.pooling:
        yield CAUSAL_ATTENTION.finding(
            "problem",
            "Its first token, which is pooled (cls), attends to itself only: every text gets nearly the same vector.",
            "The model is causal, so only the last token has read the text.",
            "Check pooling (1_Pooling/config.json: lasttoken) and is_causal or is_decoder in config.json.",
        )
    elif is_causal and runs_as_decoder:
        yield CAUSAL_ATTENTION.finding(
            "problem",
            f"A {type(checkpoint.model).__name__} runs as a decoder: a token does not see those after it.",
            "The family reads in both directions, and was most likely trained so.",
            "Remove is_decoder from config.json, or compare with the base model's.",
        )
    else:
        says = "a token sees only those before it" if is_causal else "every token sees the whole text"
        yield CAUSAL_ATTENTION.finding("ok", f"In its attention {says}.")
    if "lasttoken" in checkpoint.recipe.pooling and not checkpoint.suffix_ids and is_causal:
        yield NO_END_TOKEN.finding(
            "look",
            "Last-token pooling reads a text's own last token: the tokenizer adds no end token.",
            "Checkpoints of this kind are usually trained with one (E5-Mistral, Qwen3-Embedding), which some releases "
            "of tokenizers no longer add.",
            "Compare with the model card, and with add_eos_token in tokenizer_config.json.",
        )


def _is_decoder_family(checkpoint: Checkpoint) -> bool:
    """Whether the family's own default is to decode."""
    default = type(checkpoint.model.config)()
    return bool(getattr(default, "is_decoder", False))


def _tail(encoder: Encoder) -> Iterator[Finding]:
    """Whether the last token inside the limit counts, and nothing beyond it does."""
    checkpoint = encoder.checkpoint
    room = checkpoint.content_limit
    if checkpoint.max_length >= NO_LIMIT or room < 4:
        return
    if room > LONGEST_TRIED:
        yield TAIL.finding("not measured", f"Whether its {checkpoint.max_length:,} tokens all count was not tried.")
        return
    words = checkpoint.own_ids([long_text(2 * room)])[0]
    if len(words) <= room + 1:
        return
    inside, beyond = words[:room], words[: room + 1]
    is_left = checkpoint.tokenizer.truncation_side == "left"
    # The token next to what is cut off.
    last = inside[0] if is_left else inside[-1]
    other = next((token for token in words if token != last), last)
    changed = [other, *inside[1:]] if is_left else [*inside[:-1], other]
    rows = [checkpoint.with_special_tokens(ids) for ids in (inside, changed)]
    vectors = encoder.encode_ids(rows)
    moved = float(_distance(vectors[:1], vectors[1:])[0])
    same = checkpoint.cut(beyond, room) == (beyond[1:] if is_left else beyond[:-1])
    if moved > UNMOVED and same:
        yield TAIL.finding(
            "ok",
            f"All of its {checkpoint.max_length:,} tokens count, and nothing beyond them (with another last "
            f"token, 1 − cosine is {moved:.1e}).",
            value=moved,
        )
    else:
        yield TAIL.finding(
            "look",
            f"The last token inside its limit of {checkpoint.max_length:,} tokens does not move the vector.",
            "The end of a long text is not read.",
            "Check the limits in sentence_bert_config.json and tokenizer_config.json.",
        )


def _states(checkpoint: Checkpoint, ids: Sequence[int]) -> torch.Tensor:
    """(n, d) final states of one sequence."""
    import torch

    batch = torch.tensor([list(ids)], device=checkpoint.device)
    states: torch.Tensor = checkpoint.model(**checkpoint.inputs(batch, torch.ones_like(batch))).last_hidden_state[0]
    return states.float()


def _distance(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(N,) 1 − cosine of corresponding rows (N, D), in float64."""
    a, b = first.astype(np.float64), second.astype(np.float64)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return 1 - (a * b).sum(1) / np.maximum(lengths, 1e-30)
