"""Other ways to read the same checkpoint, each against the declared one on the same pairs and queries.

Some come from the pass that everything else uses. Others cost an encode: lower-cased texts, other special tokens, other
prompts, shorter limits. Those are tried on a part of the pairs, and on a part of the queries only if the pairs speak
for them; where there are no pairs, on the queries at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.probe import SegmentIds
from embaudit.checkpoint.prompts import PromptTokens
from embaudit.measures.quality.material import ScoredPairs
from embaudit.measures.quality.measured import Measured, MeasuredCollection, MeasuredPairs
from embaudit.measures.quality.passes import SERVED, UNNORMALISED, MultiPoolingEncoder, of_all, of_pairs
from embaudit.measures.quality.scores import CollectionScorer, PairScorer, ResampledScore
from embaudit.words.errors import is_of_machine


@dataclass(frozen=True)
class Alternative:
    """A reading of the checkpoint other than the declared one.

    Attributes:
        group: alternatives of one group contradict each other, such as poolings.
        name: as the subject of "beats the declared …".
        declared: what it would replace.
        file: where the declaration probably is.
        gains: alternative − declared by data set.
    """

    group: str
    name: str
    declared: str
    file: str
    gains: dict[str, ResampledScore]


def from_one_pass(checkpoint: Checkpoint, measured: Sequence[Measured]) -> Iterator[Alternative]:
    """Other poolings, the other similarity, and half the dimensions."""
    recipe = checkpoint.recipe
    served = {one.name: one.score(one.similarities()) for one in measured}

    def gains(similarities: Callable[[Measured], np.ndarray]) -> dict[str, ResampledScore]:
        return {one.name: one.score(similarities(one)).minus(served[one.name]) for one in measured}

    for mode in [name for name in _vectors_of(measured[0]) if name not in (SERVED, UNNORMALISED)]:
        pooling_file = (
            "1_Pooling/config.json" if recipe.has_modules else "a missing modules.json and 1_Pooling/config.json"
        )
        found = gains(lambda one, mode=mode: one.similarities(mode))  # type: ignore[misc]
        yield Alternative("pooling", f"{mode} pooling", f"{'+'.join(recipe.pooling)} pooling", pooling_file, found)
    similarity = measured[0].similarity
    other = "dot product" if similarity == "cosine" else "cosine"
    raw = UNNORMALISED if similarity == "cosine" and UNNORMALISED in _vectors_of(measured[0]) else SERVED
    yield Alternative(
        "similarity",
        f"the {other}" + (" without Normalize" if raw == UNNORMALISED else ""),
        similarity,
        "modules.json (Normalize) or similarity_fn_name in config_sentence_transformers.json",
        gains(lambda one: one.similarities(raw, "dot" if similarity == "cosine" else "cosine")),
    )
    half = checkpoint.dimension // 2
    if half >= 2:
        yield Alternative(
            "dimensions",
            f"the first {half} dimensions",
            f"all {checkpoint.dimension} dimensions",
            "truncate_dim in config_sentence_transformers.json",
            gains(lambda one: one.similarities(dimensions=half)),
        )


def _vectors_of(measured: Measured) -> list[str]:
    side = measured.firsts if isinstance(measured, MeasuredPairs) else measured.queries
    return list(side.vectors)


# What an alternative that costs an encode is tried on.
PAIRS, QUERIES, DOCUMENTS = 200, 50, 100
# Special tokens are tried on every checkpoint that has any, so on fewer pairs.
PAIRS_FOR_SPECIAL_TOKENS = 100
# An alternative goes on to the queries if it gains this on the pairs, and chance is not the likelier explanation.
WORTH_TRYING, LIKELY = 0.03, 0.2
SHORTER_LIMITS = (512, 256, 128)
# A limit or lower-casing must change this share of texts.
MIN_SHARE = 0.1
NO_PROMPT = PromptTokens("", (), 0)
Texts = Sequence[str]
CASE_FILES = "do_lower_case in sentence_bert_config.json, or the normalizer in tokenizer.json"
SPECIAL_FILES = "the post_processor in tokenizer.json, or tokenizer_config.json"
PROMPT_FILE = "prompts and default_prompt_name in config_sentence_transformers.json"
LENGTH_FILES = "max_seq_length in sentence_bert_config.json"


def from_encodes(checkpoint: Checkpoint, measured: Sequence[Measured]) -> Iterator[Alternative]:
    """Lower-cased texts, other special tokens, other prompts and shorter limits, where the texts show a difference."""
    for other in other_readers(checkpoint):
        yield from _tried(other, measured)


@dataclass(frozen=True)
class Reader:
    """A checkpoint under an alternative; the first four as in ``Alternative``.

    Attributes:
        before: what is done to a text first.
        pairs: how many of them it is tried on.
    """

    group: str
    name: str
    declared: str
    file: str
    checkpoint: Checkpoint
    before: Callable[[str], str] = str
    pairs: int = PAIRS

    def ids(self, texts: Texts, kind: str) -> list[list[int]]:
        reading = self.checkpoint.reading(kind)  # type: ignore[arg-type]
        return reading.tokenize([self.before(text) for text in texts])


def other_readers(checkpoint: Checkpoint) -> Iterator[Reader]:
    """Every alternative that costs an encode."""
    yield Reader("case", "lower-cased text", "text as written", CASE_FILES, checkpoint, str.lower)
    for name, declared, other in other_special_tokens(checkpoint):
        yield Reader("special_tokens", name, declared, SPECIAL_FILES, other, pairs=PAIRS_FOR_SPECIAL_TOKENS)
    for name, declared, other in other_prompts(checkpoint):
        yield Reader("prompts", name, declared, PROMPT_FILE, other)
    for limit in SHORTER_LIMITS:
        if limit < checkpoint.max_length:
            yield with_limit(checkpoint, limit)


def with_limit(checkpoint: Checkpoint, limit: int) -> Reader:
    """The same with no more tokens of a text, or with more where its limits are lower."""
    limits = {kind: min(limit, most) for kind, most in checkpoint.limits.items()}
    other = replace(checkpoint, limits=limits if limit < checkpoint.max_length else dict.fromkeys(limits, limit))
    return Reader("length", f"a limit of {limit} tokens", f"limit of {checkpoint.max_length}", LENGTH_FILES, other)


def other_special_tokens(checkpoint: Checkpoint) -> Iterator[tuple[str, str, Checkpoint]]:
    """(name, declared, checkpoint) without the special tokens that the tokenizer adds, or with one that it does not."""
    tokenizer, segments = checkpoint.tokenizer, checkpoint.segments
    if checkpoint.prefix_ids or checkpoint.suffix_ids:
        bare = segments and SegmentIds((), segments.text, (), segments.padding)
        without = replace(checkpoint, prefix_ids=(), suffix_ids=(), segments=bare)
        yield "text without special tokens", "text with special tokens", without
    start = next((one for one in (tokenizer.cls_token_id, tokenizer.bos_token_id) if one is not None), None)
    if not checkpoint.prefix_ids and start is not None and start < checkpoint.vocabulary_size:
        longer = segments and replace(segments, before=(segments.text,))
        yield "text with a start token", "text without one", replace(checkpoint, prefix_ids=(start,), segments=longer)
    end = next((one for one in (tokenizer.sep_token_id, tokenizer.eos_token_id) if one is not None), None)
    if not checkpoint.suffix_ids and end is not None and end < checkpoint.vocabulary_size:
        longer = segments and replace(segments, after=(segments.text,))
        yield "text with an end token", "text without one", replace(checkpoint, suffix_ids=(end,), segments=longer)


def other_prompts(checkpoint: Checkpoint) -> Iterator[tuple[str, str, Checkpoint]]:
    """(name, declared, checkpoint) without prompts, with each one everywhere, and swapped; none if none is declared."""
    prompts = dict(checkpoint.prompts)
    declared = {prompt.text: prompt for prompt in prompts.values() if prompt.text}
    if not declared:
        return
    tried = {"text without prompts": dict.fromkeys(prompts, NO_PROMPT)}
    tried |= {f"the prompt {text!r} everywhere": dict.fromkeys(prompts, prompt) for text, prompt in declared.items()}
    tried["swapped prompts"] = prompts | {"query": prompts["document"], "document": prompts["query"]}
    for name, other in tried.items():
        if other != prompts:
            yield name, "prompts as declared", replace(checkpoint, prompts=other)


def _tried(reader: Reader, measured: Sequence[Measured]) -> Iterator[Alternative]:
    """Nothing if the alternative changes too few texts, or cannot be encoded."""
    gains: dict[str, ResampledScore] = {}
    pairs = [one for one in measured if isinstance(one, MeasuredPairs)]
    collections = [one for one in measured if isinstance(one, MeasuredCollection)]
    try:
        for one in pairs:
            if (gain := _gain_on_pairs(one, reader)) is not None:
                gains[one.name] = gain
        if not gains or any(is_worth_trying(gain) for gain in gains.values()):
            for judged in collections:
                if (gain := _gain_on_queries(judged, reader)) is not None:
                    gains[judged.name] = gain
    except Exception as error:  # texts without tokens, vectors that are not finite, insistence on special tokens
        if is_of_machine(error):
            raise
        return
    if gains:
        yield Alternative(reader.group, reader.name, reader.declared, reader.file, gains)


def is_worth_trying(gain: ResampledScore) -> bool:
    """Whether a gain on the pairs is worth an encode of documents, to see if it is one on the queries too."""
    return gain.value >= WORTH_TRYING and gain.p_value < LIKELY


def _gain_on_pairs(measured: MeasuredPairs, reader: Reader) -> ResampledScore | None:
    """On the pairs whose tokens the alternative changes most."""
    pairs = measured.pairs
    encoder = MultiPoolingEncoder(reader.checkpoint)
    first, second = (reader.ids(side, "text") for side in (pairs.firsts, pairs.seconds))
    change = np.maximum(_change(measured.firsts_ids, first), _change(measured.seconds_ids, second))
    if (change > 0).mean() < MIN_SHARE:
        return None
    places = np.argsort(-change, kind="stable")[: min(reader.pairs, int((change > 0).sum()))]
    found = encoder.passes([*[first[place] for place in places], *[second[place] for place in places]]).served
    part = ScoredPairs(
        pairs.name, *(tuple(side[place] for place in places) for side in (pairs.firsts, pairs.seconds, pairs.scores))
    )
    scorer = PairScorer(part)
    other = of_pairs(found[: len(places)], found[len(places) :], measured.similarity)
    return scorer.spearman(other).minus(scorer.spearman(measured.similarities()[places]))


def _gain_on_queries(measured: MeasuredCollection, reader: Reader) -> ResampledScore | None:
    """On the first queries, among their documents and some others; only texts with other ids are encoded again."""
    part, places = measured.collection.first(QUERIES, DOCUMENTS)
    sides = []
    share = 0.0
    for kind, texts, ids, vectors in (
        ("query", part.queries, measured.query_ids[: len(part.queries)], measured.queries.served[: len(part.queries)]),
        (
            "document",
            part.documents,
            [measured.document_ids[place] for place in places],
            measured.documents.served[places],
        ),
    ):
        other = reader.ids(texts, kind)
        changed = _change(ids, other) > 0
        share = max(share, float(changed.mean()))
        mixed = vectors.copy()
        if changed.any():
            encoder = MultiPoolingEncoder(reader.checkpoint.reading(kind))  # type: ignore[arg-type]
            mixed[changed] = encoder.passes([one for one, is_new in zip(other, changed, strict=True) if is_new]).served
        sides.append((mixed, vectors))
    if share < MIN_SHARE:
        return None
    scorer = CollectionScorer(part)
    (other_queries, queries), (other_documents, documents) = sides
    before = of_all(queries, documents, measured.similarity)
    after = of_all(other_queries, other_documents, measured.similarity)
    return scorer.ndcg(after).minus(scorer.ndcg(before))


def _change(before: Sequence[Sequence[int]], after: Sequence[Sequence[int]]) -> np.ndarray:
    """(n,) share of a text's distinct tokens that only one reading has; above 0 if only their order differs."""
    return np.array(
        [
            0.0 if list(one) == list(two) else max(len({*one} ^ {*two}) / max(len({*one, *two}), 1), 1e-9)
            for one, two in zip(before, after, strict=True)
        ]
    )
