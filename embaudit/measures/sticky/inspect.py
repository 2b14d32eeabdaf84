"""Is this token sticky? Measures a few tokens in full without a scan, for ``embaudit token``.

The ``reference`` protocol: what the code published with arXiv 2507.18171 computes, for comparison with its lists.

It differs from the paper's definition: the token's decoded *text* is concatenated with the sentence (so most tokens do
not come back as themselves), for i = 1..n copies, and the score rewards falling distances. With D = [d_0 … d_n] the
cosine distances of I(s2, t, i) to s1 and c = diff(D), for one (pair, operator):

    score = (Σ falls + 0.1·#falls + 0.1·d(t, s1)) / (Σ rises + 0.05·#rises + 0.01)

where falls are the −c of negative steps and rises the positive steps; 0.35 prefix + 0.35 suffix + 0.30 random, averaged
over the scoring pairs. The validation value is the share of pairs with mean(d_1 … d_n) < d_0, weighted 4:4:3. The score
is discontinuous where a step changes sign, so compare it with that in mind.

The published random operator draws from one global stream and can be reproduced only in distribution. Here positions
are drawn from seed and sentence, and are the same for every token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.checkpoint.encoder import Progress, no_progress
from embaudit.measures.sticky import StickySettings
from embaudit.measures.sticky.effects import measure_effects
from embaudit.measures.sticky.insertion import (
    OPERATORS,
    Operator,
    SentencePair,
    distinct_sentences,
    generator_for,
    named_pairs,
    spread_pairs,
)
from embaudit.measures.sticky.moments import insert_tokens, rho
from embaudit.measures.sticky.plan import choose_controls
from embaudit.measures.sticky.points import Points, require_below_u, unit_rows
from embaudit.words.errors import UsageError

MEASURE_VERSION = 1
SCORE_WEIGHTS: dict[Operator, float] = {"prefix": 0.35, "suffix": 0.35, "random": 0.30}
VALUE_WEIGHTS: dict[Operator, float] = {"prefix": 4 / 11, "suffix": 4 / 11, "random": 3 / 11}
# The published code shortlists the top 2 % of scores.
SHORTLIST_PERCENTILE = 98
# Batches are of similar length within a step, so a step holds several: with one batch a step, more than half of a GPU's
# work on the published validation pairs would be padding.
TEXTS_PER_STEP = 4_096
TOKENS_PER_TEXT = 4


@dataclass(frozen=True)
class ReferenceInputs:
    """Inputs shared by all tokens.

    Attributes:
        seconds: the U distinct sentences that tokens are inserted into; a quarter of the published ones are repeated.
        second_of: (P,) int64, index into ``seconds`` for each pair.
        firsts: (P, D) float32, unit vectors of the pairs' first sentences.
        before: (P,) float64, d_0, cosine distance without insertion.
    """

    seconds: tuple[str, ...]
    second_of: np.ndarray
    firsts: np.ndarray
    before: np.ndarray
    copies: int
    seed: int

    @property
    def texts_per_token(self) -> int:
        return self.texts_by(OPERATORS)

    def texts_by(self, operators: Sequence[Operator]) -> int:
        """Texts per token with these operators only."""
        return len(self.seconds) * len(operators) * self.copies


def prepare_reference(
    encoder: Encoder, pairs: Sequence[tuple[str, str]], copies: int = 8, seed: int = 0
) -> ReferenceInputs:
    """Encode the pairs; repeated pairs count repeatedly."""
    seconds = tuple(dict.fromkeys(second for _, second in pairs))
    second_of = np.array([seconds.index(second) for _, second in pairs], dtype=np.int64)
    firsts = unit_rows(encoder.encode_texts([first for first, _ in pairs]))
    vectors = unit_rows(encoder.encode_texts(seconds))[second_of]
    before = 1 - np.einsum("pd,pd->p", firsts, vectors, dtype=np.float64)
    return ReferenceInputs(seconds, second_of, firsts, before, copies, seed)


def pairs_below(similarity: np.ndarray, u: float, count: int, generator: np.random.Generator) -> list[tuple[int, int]]:
    """The published choice of pairs: similarity < u, spread evenly over [min, min + 0.8·(u − min)].

    Args:
        similarity: (N, N) cosines of distinct sentences.

    Returns:
        Index pairs, least similar first; sentences may repeat, pairs do not. Empty if no pair lies below u.
    """
    lowest = float(similarity[np.triu_indices(len(similarity), 1)].min())
    return spread_pairs(similarity, lowest, lowest + 0.8 * (u - lowest), count, generator) if lowest < u else []


def choose_reference_pairs(
    encoder: Encoder, texts: Sequence[str], u: float, counts: Mapping[str, int], most_sentences: int, seed: int
) -> dict[str, tuple[SentencePair, ...]]:
    """Pairs of a corpus's sentences below u, as many as requested for each purpose.

    Raises:
        MeasureError: if no pair lies below u.
    """
    sentences = distinct_sentences(texts, most_sentences, seed)
    unit = unit_rows(encoder.encode_texts(sentences)).astype(np.float64)
    similarity = unit @ unit.T
    require_below_u(similarity, u)
    return {
        purpose: named_pairs(
            sentences, similarity, pairs_below(similarity, u, count, np.random.default_rng([seed, index]))
        )
        for index, (purpose, count) in enumerate(counts.items())
    }


def insert_text(sentence: str, token: str, operator: Operator, copies: int, seed: int) -> list[str]:
    """The sentence with 1, 2 … ``copies`` copies of a token's text.

    prefix and suffix concatenate without a space, as published; random inserts one copy at a time between
    whitespace-separated words, keeping the previous ones in place.
    """
    if operator == "prefix":
        return [token * i + sentence for i in range(1, copies + 1)]
    if operator == "suffix":
        return [sentence + token * i for i in range(1, copies + 1)]
    generator = generator_for(sentence, copies, seed)
    words, texts = sentence.split(), []
    for _ in range(copies):
        words.insert(int(generator.integers(0, len(words) + 1)), token)
        texts.append(" ".join(words))
    return texts


def distances(
    encoder: Encoder,
    inputs: ReferenceInputs,
    tokens: Sequence[str],
    progress: Progress = no_progress,
    operators: Sequence[Operator] = OPERATORS,
) -> np.ndarray:
    """Cosine distances d_1 … d_n to s1 after insertion, (T, P, O, n) float64; operators in the order given.

    Args:
        tokens: decoded texts of the tokens.
    """
    result = np.empty((len(tokens), len(inputs.second_of), len(operators), inputs.copies))
    texts_per_step = max(TEXTS_PER_STEP, encoder.tokens_per_batch // TOKENS_PER_TEXT)
    step = max(1, texts_per_step // inputs.texts_by(operators))
    for start in range(0, len(tokens), step):
        part = tokens[start : start + step]
        texts = [
            text
            for token in part
            for sentence in inputs.seconds
            for operator in operators
            for text in insert_text(sentence, token, operator, inputs.copies, inputs.seed)
        ]
        vectors = unit_rows(encoder.encode_texts(texts, progress))
        shaped = vectors.reshape(len(part), len(inputs.seconds), len(operators), inputs.copies, -1)
        for pair, second in enumerate(inputs.second_of):
            result[start : start + len(part), pair] = 1 - shaped[:, second].astype(np.float64) @ inputs.firsts[pair]
    return result


def sticky_scores(encoder: Encoder, inputs: ReferenceInputs, tokens: Sequence[str], after: np.ndarray) -> np.ndarray:
    """(T,) float64: the published score from ``distances``."""
    weights = np.array([SCORE_WEIGHTS[operator] for operator in OPERATORS])
    score: np.ndarray = operator_scores(encoder, inputs, tokens, after) @ weights
    return score


def operator_scores(encoder: Encoder, inputs: ReferenceInputs, tokens: Sequence[str], after: np.ndarray) -> np.ndarray:
    """(T, O) float64: the score of each operator in ``after``, averaged over the pairs."""
    alone = 1 - unit_rows(encoder.encode_texts(list(tokens))).astype(np.float64) @ inputs.firsts.T.astype(np.float64)
    before = np.broadcast_to(inputs.before[None, :, None, None], (*after.shape[:3], 1))
    steps = np.diff(np.concatenate([before, after], axis=3), axis=3)
    falls, rises = np.clip(-steps, 0, None), np.clip(steps, 0, None)
    gain = falls.sum(axis=3) + 0.1 * (steps < 0).sum(axis=3) + 0.1 * alone[:, :, None]
    cost = rises.sum(axis=3) + 0.05 * (steps > 0).sum(axis=3) + 0.01
    scores: np.ndarray = (gain / cost).mean(axis=1)
    return scores


def validation_values(inputs: ReferenceInputs, after: np.ndarray) -> np.ndarray:
    """(T,) float64 in [0, 1]: share of pairs whose mean distance falls, operators weighted 4:4:3."""
    falls = after.mean(axis=3) < inputs.before[None, :, None]
    weights = np.array([VALUE_WEIGHTS[operator] for operator in OPERATORS])
    value: np.ndarray = falls.mean(axis=1) @ weights
    return value


def shortlist(scores: np.ndarray) -> np.ndarray:
    """Indices of the tokens at or above the 98th percentile (linear), ascending."""
    return np.flatnonzero(scores >= np.percentile(scores, SHORTLIST_PERCENTILE))


DESCRIBED = ("token", "text", "category", "is_reachable", "origin", "script")
TEXT_MARK = "text:"


def find_token(checkpoint: Checkpoint, wanted: str) -> int:
    """The id for a user's input: an id, a vocabulary string (``##ing``), or a text that is a single token.

    ``text:7`` is the text 7, not the id.

    Raises:
        UsageError: if the checkpoint has no such token; the message says which tokens the text consists of.
    """
    tokenizer = checkpoint.tokenizer
    if wanted.isascii() and wanted.isdigit():
        if int(wanted) >= checkpoint.vocabulary_size:
            raise UsageError(
                f"There is no token {wanted}: {checkpoint.resolved.ref} has ids from 0 to "
                f"{checkpoint.vocabulary_size - 1}.",
                next_step=f"For the text {wanted!r} write {TEXT_MARK}{wanted}.",
            )
        return int(wanted)
    text = wanted.removeprefix(TEXT_MARK)
    entry = tokenizer.get_vocab().get(text)
    # Without the prompt: the text is looked up, not encoded.
    ids = tokenizer(text, add_special_tokens=False)["input_ids"] if entry is None else [entry]
    # A text that becomes the unknown token is not in the vocabulary.
    if len(ids) != 1 or (entry is None and ids[0] == tokenizer.unk_token_id):
        pieces = " ".join(tokenizer.convert_ids_to_tokens(ids))
        raise UsageError(
            f"{text!r} is not a token of {checkpoint.resolved.ref}: it becomes {pieces or 'nothing'}.",
            next_step="Give one of these, or an id." if pieces else "Give an id.",
        )
    if ids[0] >= checkpoint.vocabulary_size:
        raise UsageError(
            f"The tokenizer knows {text!r} as id {ids[0]}, but the model has no embedding for it.",
            next_step="Give another token; embaudit check says which ids have none.",
        )
    return int(ids[0])


# Of an effect, what an inspection calls otherwise.
SHOWN_AS = {
    "slope": "retention",
    "slope_low": "retention_low",
    "slope_high": "retention_high",
    "p_pull": "pull_p_value",
    "p_slope": "retention_p_value",
}


def inspect_tokens(
    encoder: Encoder,
    points: Points,
    token_ids: Sequence[int],
    vocabulary: Sequence[Mapping[str, Any]],
    settings: StickySettings,
    seed: int,
    progress: Progress = no_progress,
) -> list[dict[str, Any]]:
    """``definition`` and ``retention`` of each token, in the given order, one object each.

    ``retention`` is the slope; ``rho_0`` and ``rho`` are over the points below u, by operator and over all three.
    Loss, excess and p-values are relative to ordinary tokens, as many as the profile says.
    """
    wanted = np.array(token_ids, dtype=np.int64)
    controls = choose_controls(vocabulary, wanted, settings.controls, seed)
    every = np.concatenate([np.unique(wanted), controls])
    moments = insert_tokens(encoder, points, every, range(len(points.draws)), progress)
    measured = measure_effects(points, moments, np.isin(every, controls), settings.resamples, seed)
    effects = dict(zip(every.tolist(), measured, strict=True))
    by_operator = {}
    for operator in OPERATORS:
        held = [place for place, draw in enumerate(points.draws) if draw.operator == operator]
        by_operator[f"rho_{operator}"] = rho(points.at(held), moments.at(slice(None), held))
    place = {token: index for index, token in enumerate(every.tolist())}
    found = []
    for token_id in token_ids:
        found.append(
            {
                **_described(vocabulary, token_id),
                "u": points.u,
                "draws": len(points.draws),
                "anchors": len(points.anchors),
                "points_below_u": int(points.below_u.sum()),
                "controls": len(controls),
                **{name: float(values[place[token_id]]) for name, values in by_operator.items()},
                **{SHOWN_AS.get(name, name): value for name, value in vars(effects[token_id]).items()},
            }
        )
    return found


def inspect_reference(
    encoder: Encoder,
    validation: Sequence[tuple[str, str]],
    scoring: Sequence[tuple[str, str]] | None,
    token_ids: Sequence[int],
    vocabulary: Sequence[Mapping[str, Any]],
    copies: int,
    seed: int,
    progress: Progress = no_progress,
) -> list[dict[str, Any]]:
    """The ``reference`` protocol's ``value`` of each token, and its ``score`` if scoring pairs are given."""
    texts = [decoded(encoder.checkpoint, token_id) for token_id in token_ids]
    inputs = prepare_reference(encoder, validation, copies, seed)
    values = validation_values(inputs, distances(encoder, inputs, texts, progress))
    scores: list[float | None] = [None] * len(texts)
    if scoring:
        given = prepare_reference(encoder, scoring, copies, seed)
        scores = sticky_scores(encoder, given, texts, distances(encoder, given, texts, progress)).tolist()
    return [
        {**_described(vocabulary, token_id), "inserted": text, "value": float(value), "score": score}
        for token_id, text, value, score in zip(token_ids, texts, values, scores, strict=True)
    ]


def decoded(checkpoint: Checkpoint, token_id: int) -> str:
    """The text that the ``reference`` protocol inserts: the id decoded alone, as published."""
    text: str = checkpoint.tokenizer.decode([token_id], clean_up_tokenization_spaces=False)
    return text


def _described(vocabulary: Sequence[Mapping[str, Any]], token_id: int) -> dict[str, Any]:
    entry = next(row for row in vocabulary if row["token_id"] == token_id)
    return {"id": token_id, **{name: entry[name] for name in DESCRIBED}}
