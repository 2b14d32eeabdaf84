"""Other ways to read a text with the same checkpoint: what servers, exports and clients do to it before the network.

A reading turns texts into id sequences. ``alternatives`` gives those that differ from one in a single respect; applied
again, they combine.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.probe import SegmentIds
from embaudit.checkpoint.prompts import PromptTokens, prompt_tokens
from embaudit.checkpoint.settings import read_settings
from embaudit.checkpoint.tokenizer import NO_LIMIT, position_limit
from embaudit.questions.parity.clients import HEADERS, TEXT_CHANGES
from embaudit.questions.parity.foreign import CHARACTERS, WHOLE, WORDS, Content, CutPieces, Unit, misread_units
from embaudit.questions.parity.networks import WINDOWS, half_window, with_other_bases, with_other_windows

# What a token sees of its text: as the model declares, only what is before it, or all; or all of it at places that are
# counted from zero; or, in layers with a window, so many tokens before it and after it.
Attention = Literal["declared", "causal", "whole", "from zero"] | tuple[int, int]
Side = Literal["left", "right", "all", "windows"]
SIDES: tuple[Side, ...] = ("right", "left", "all", "windows")
# Limits that servers have, beside those that a checkpoint's files and sizes say.
LIMITS = (32, 64, 128, 256, 384, 512, 1_024, 2_048, 8_192)
# Widths that exports and servers pad every text to; longer ones would take minutes.
PADDED_TO, LONGEST_PADDED = (64, 128, 256, 512), 1_024
# Other special tokens that may stand at the end.
ENDS_TRIED = 12
# Prompts of well-known families, which servers add to other checkpoints, too.
PROMPTS = (
    "query: ",
    "passage: ",
    "search_query: ",
    "search_document: ",
    "Represent this sentence for searching relevant passages: ",
    "Represent this sentence: ",
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: ",
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:",
    "task: search result | query: ",
    "title: none | text: ",
    "Query: ",
    "Passage: ",
    "Document: ",
    "clustering: ",
    "classification: ",
    "Represent the query for retrieving evidence documents: ",
    "Represent the document for retrieval: ",
    "为这个句子生成表示以用于检索相关文章：",
)


class Window(NamedTuple):
    """One id sequence of a text, and its weight among the text's."""

    ids: tuple[int, ...]
    weight: int = 1


Windows = list[Window]


@dataclass(frozen=True)
class Reading:
    """A way to read texts.

    Attributes:
        checkpoint: with the prompts and special tokens of this reading.
        before: what is done to a text first.
        limit: tokens that are read, special ones and prompt included; ``NO_LIMIT`` for all.
        side: where a longer text is cut: on the left or right, between its special tokens; on the right with all that
            stands there, the end token too; or it is cut into windows whose vectors are averaged.
        attention: what a token sees of its text.
        header: what is put before a text then.
        cut: after how many of which units it is cut off then.
        pieces: how a client cuts it, before it is sent.
        padded: to how many tokens a shorter text is padded, and the padding read as the text is; 0 for none.
        differs: what is different from the declared reading, as the end of "it …"; by the aspect that it changes.
    """

    checkpoint: Checkpoint
    before: Callable[[str], str]
    limit: int
    side: Side
    attention: Attention = "declared"
    header: str = ""
    cut: tuple[Unit, int] | None = None
    pieces: CutPieces = WHOLE
    padded: int = 0
    differs: tuple[tuple[str, str], ...] = ()

    @property
    def said(self) -> tuple[str, ...]:
        return tuple(sentence for _, sentence in self.differs)

    @property
    def averages(self) -> bool:
        """Whether a text may have several vectors, which are averaged."""
        return self.side == "windows" or self.pieces.are_averaged

    def sent(self, text: str) -> str:
        """A text as the client has it before it cuts it into pieces."""
        text = self.header + self.before(text)
        if self.cut is not None:
            unit, most = self.cut
            units = unit.split(text)
            # What is joined of all units may be another text.
            text = text if len(units) <= most else str(unit.join(units[:most]))
        # Nobody puts a prompt before token ids: that was the client.
        prompt = self.checkpoint.prompt.text if self.pieces.unit.gives_ids else ""
        return prompt + text

    def windows(self, texts: Sequence[str]) -> list[Windows]:
        """The id sequences of each text: one, or one per window. A text without tokens has none."""
        sent = [self.pieces.of(self.sent(text)) for text in texts]
        written = [content for some in sent for content, _ in some if isinstance(content, str)]
        tokens = iter(self.checkpoint.prompted_ids(written))
        found = []
        for some in sent:
            # A text of which a piece is refused has no vector.
            is_refused = any(content is None for content, _ in some)
            read = [(next(tokens) if isinstance(content, str) else content, content, units) for content, units in some]
            found.append([] if is_refused else [one for given in read for one in self._windows_of(*given)])
        return found

    def _windows_of(self, ids: Sequence[int] | None, content: Content, units: int) -> Iterator[Window]:
        """What is read of one piece."""
        checkpoint = self.checkpoint
        is_bare = self.pieces.unit.is_bare and not isinstance(content, str)
        prefix, suffix = ((), ()) if is_bare else (checkpoint.prefix_ids, checkpoint.suffix_ids)
        ids = ids or []
        room = max(1, self.limit - len(prefix) - len(suffix))
        if self.side == "windows":
            for start in range(0, len(ids) or 1, room):
                sequence = (*prefix, *ids[start : start + room], *suffix)
                if sequence:
                    yield Window(sequence, len(sequence))
            return
        if self.side == "all":
            sequence = (*prefix, *ids, *suffix)[: self.limit]
        else:
            sequence = (*prefix, *(ids[-room:] if self.side == "left" else ids[:room]), *suffix)
        if sequence:
            yield Window(self._padded(sequence), units)

    def _padded(self, sequence: tuple[int, ...]) -> tuple[int, ...]:
        pad = self.checkpoint.tokenizer.pad_token_id or 0
        return (*sequence, *(pad,) * (self.padded - len(sequence)))

    def changed(self, aspect: str, sentence: str, **changes: Any) -> Reading:
        return replace(self, differs=(*self.differs, (aspect, sentence)), **changes)


def declared(checkpoint: Checkpoint) -> Reading:
    """The reading that the checkpoint declares."""
    return Reading(checkpoint, str, checkpoint.max_length, _declared_side(checkpoint))


def uncut(reading: Reading) -> Reading:
    """The reading with the declared limit, by a client that cuts nothing off."""
    checkpoint = reading.checkpoint
    others = tuple(one for one in reading.differs if one[0] not in ("limit", "cut"))
    return replace(reading, limit=checkpoint.max_length, side=_declared_side(checkpoint), cut=None, differs=others)


def _declared_side(checkpoint: Checkpoint) -> Side:
    return "left" if checkpoint.tokenizer.truncation_side == "left" else "right"


def alternatives(reading: Reading) -> Iterator[Reading]:
    """Readings that differ from one in one more respect; an aspect changes once, but for what is done to the text."""
    done = [aspect for aspect, _ in reading.differs]
    if done.count("text") < 2:
        yield from _texts(reading)
    if "cut" not in done:
        for unit, usual in USUAL_CUTS.items():
            yield from (cut_after(reading, unit, most) for most in usual)
    if "tokenizer" not in done and "ids" not in done:
        yield from _tokenizers(reading)
    if "special tokens" not in done:
        yield from _special_tokens(reading)
    if "segments" not in done:
        yield from _segments(reading)
    if "attention" not in done:
        yield reading.changed("attention", "lets tokens see only those before them", attention="causal")
        yield reading.changed("attention", _said_of_whole(reading.checkpoint), attention="whole")
        if _counts_places_behind_padding(reading.checkpoint):
            said = "counts positions from 0, where the model's first is behind that of padding"
            yield reading.changed("attention", said, attention="from zero")
        if (half := half_window(reading.checkpoint.model)) is not None:
            for before, after in ((half - 1, half), (half, half - 1), (half + 1, half), (half, half + 1)):
                said = (
                    f"lets tokens see {before:,} before them and {after:,} after them in layers with a window, where "
                    f"config.json declares {half:,} on either side"
                )
                yield reading.changed("attention", said, attention=(before, after))
    if "network" not in done:
        for said, other in with_other_windows(reading.checkpoint):
            yield reading.changed("network", said, checkpoint=other)
    if "limit" not in done:
        yield from _limits(reading)


def whole_alternatives(reading: Reading) -> Iterator[Reading]:
    """Further ones, which change every text: what stands before it, and what stands for it."""
    done = [aspect for aspect, _ in reading.differs]
    if "prompt" not in done and "header" not in done:
        yield from _prompts(reading)
    if "network" not in done:
        for said, other in with_other_bases(reading.checkpoint):
            yield reading.changed("network", said, checkpoint=other)
    if "padding" not in done:
        for width in sorted({reading.checkpoint.max_length, *PADDED_TO}):
            if width <= min(position_limit(reading.checkpoint.model) or NO_LIMIT, LONGEST_PADDED):
                said = f"pads texts to {width:,} tokens and reads the padding, without a mask"
                yield reading.changed("padding", said, padded=width)
    if not done:
        yield from _headers(reading)
        yield from _foreign_ids(reading)


# Clients and servers that count characters or words, since they have no tokenizer.
USUAL_CUTS: dict[Unit, tuple[int, ...]] = {
    CHARACTERS: (256, 512, 1_000, 1_024, 2_000, 2_048, 4_096, 8_000),
    WORDS: (100, 128, 200, 256, 300, 384, 400, 512),
}


def _done_to_texts(reading: Reading, sentence: str, change: Callable[[str], str]) -> Reading:
    """The change comes last, after the header."""
    before = reading.before
    return reading.changed("text", sentence, before=lambda text: change(reading.header + before(text)), header="")


def cut_after(reading: Reading, unit: Unit, most: int) -> Reading:
    return reading.changed("cut", f"reads {most:,} {unit.name}", cut=(unit, most))


def in_pieces(reading: Reading, pieces: CutPieces) -> Reading:
    """The reading of a client that cuts a text into pieces."""
    size = f"{pieces.size:,} {pieces.unit.name}"
    if pieces.only_last:
        sentence = f"cuts texts into windows of {size} and reads the last"
    else:
        shared = f" that overlap by {pieces.overlap:,}" if pieces.overlap else ""
        sentence = f"cuts texts into windows of {size}{shared} and averages their vectors"
    return reading.changed("pieces", sentence, pieces=pieces)


def with_limit(reading: Reading, limit: int, side: Side) -> Reading:
    """The reading with another limit, or cut at another side."""
    how = {
        "right": f"reads {limit:,} tokens" if limit < NO_LIMIT else "cuts no text",
        "all": f"cuts after {limit:,} tokens, and so the end token of longer texts",
        "left": f"reads the last {limit:,} tokens",
        "windows": f"cuts texts into windows of {limit:,} tokens and averages their vectors",
    }[side]
    return reading.changed("limit", how, limit=limit, side=side)


def _texts(reading: Reading) -> Iterator[Reading]:
    for sentence, change in TEXT_CHANGES.items():
        if sentence in reading.said:
            continue
        yield _done_to_texts(reading, sentence, change)
        if reading.header:
            # The header may as well come last.
            changed = _done_to_texts(replace(reading, header=""), sentence, change)
            yield replace(changed, header=reading.header)


def _headers(reading: Reading) -> Iterator[Reading]:
    for header in HEADERS:
        yield reading.changed("header", f"puts {header!r} before texts", header=header)
    if own := reading.checkpoint.prompt.text:
        yield reading.changed("header", f"puts {own!r} before texts twice", header=own)
        # Clients that do not know of the declared prompt, which is put there all the same.
        for prompt in PROMPTS:
            yield reading.changed("header", f"puts {prompt!r} before texts, after {own!r}", header=prompt)


def _foreign_ids(reading: Reading) -> Iterator[Reading]:
    checkpoint = reading.checkpoint
    bare = replace(checkpoint, prompts=dict.fromkeys(checkpoint.prompts, PromptTokens("", (), 0)))
    for sentence, unit in misread_units(checkpoint):
        kept = bare if unit.gives_ids else checkpoint
        yield reading.changed("ids", sentence, checkpoint=kept, pieces=replace(reading.pieces, unit=unit))


def _tokenizers(reading: Reading) -> Iterator[Reading]:
    """The tokenizer without what it does to case, accents and special tokens in texts."""
    checkpoint = reading.checkpoint
    tokenizer = checkpoint.tokenizer
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None and backend.normalizer is not None:
        from tokenizers.normalizers import BertNormalizer

        others = {
            "does not lower-case": BertNormalizer(lowercase=False, strip_accents=True),
            "does not lower-case or strip accents": BertNormalizer(lowercase=False, strip_accents=False),
            "lower-cases but keeps accents": BertNormalizer(lowercase=True, strip_accents=False),
            "lower-cases and strips accents": BertNormalizer(lowercase=True, strip_accents=True),
            "does not separate Chinese characters": BertNormalizer(
                lowercase="true" in str(backend.normalizer).lower(), handle_chinese_chars=False
            ),
        }
        for sentence, normalizer in others.items():
            other = copy.deepcopy(tokenizer)
            other.backend_tokenizer.normalizer = normalizer
            yield reading.changed("tokenizer", sentence, checkpoint=replace(checkpoint, tokenizer=other))
    recipe = checkpoint.recipe
    plain = replace(
        recipe, settings=replace(recipe.settings, call={**recipe.settings.call, "split_special_tokens": True})
    )
    yield reading.changed(
        "tokenizer", "reads special tokens in texts as plain text", checkpoint=replace(checkpoint, recipe=plain)
    )


def _prompts(reading: Reading) -> Iterator[Reading]:
    checkpoint = reading.checkpoint
    known = read_settings(checkpoint.resolved.folder).get("prompts") or {}
    own = {
        text
        for text in (*known.values(), *(prompt.text for prompt in checkpoint.prompts.values()))
        if isinstance(text, str)
    }
    current = checkpoint.prompt.text
    for text in ("", *sorted(own), *PROMPTS):
        if text == current:
            continue
        tokens = (
            prompt_tokens(text, checkpoint.tokenizer, checkpoint.recipe.call, is_pooled=checkpoint.recipe.pools_prompt)
            if text
            else PromptTokens("", (), 0)
        )
        sentence = f"puts {text!r} before texts" if text else f"leaves out the prompt {current!r}"
        yield reading.changed(
            "prompt", sentence, checkpoint=replace(checkpoint, prompts=dict.fromkeys(checkpoint.prompts, tokens))
        )
    if current and checkpoint.prompt.unpooled:
        pooled = replace(checkpoint.prompt, unpooled=0)
        yield reading.changed(
            "prompt",
            "pools the prompt's tokens, too",
            checkpoint=replace(checkpoint, prompts=dict.fromkeys(checkpoint.prompts, pooled)),
        )


def _special_tokens(reading: Reading) -> Iterator[Reading]:
    checkpoint = reading.checkpoint
    tokenizer = checkpoint.tokenizer
    prefix, suffix = checkpoint.prefix_ids, checkpoint.suffix_ids
    start = next((one for one in (tokenizer.cls_token_id, tokenizer.bos_token_id) if one is not None), None)
    end = next((one for one in (tokenizer.sep_token_id, tokenizer.eos_token_id) if one is not None), None)
    tried: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {}
    if prefix and suffix:
        tried["adds no special tokens"] = ((), ())
    if prefix:
        tried["leaves out the start token"] = ((), suffix)
        tried["adds the start token twice"] = (prefix + prefix, suffix)
    elif start is not None:
        tried["adds a start token"] = ((start,), suffix)
    if suffix:
        tried["leaves out the end token"] = (prefix, ())
        tried["adds the end token twice"] = (prefix, suffix + suffix)
    elif end is not None:
        tried["adds an end token"] = (prefix, (end,))
    if prefix and suffix:
        tried["adds the special tokens twice"] = (prefix + prefix, suffix + suffix)
    if suffix:
        others = [one for one in _special_ids(checkpoint) if (one,) != suffix][:ENDS_TRIED]
        for one in others:
            names = [str(tokenizer.convert_ids_to_tokens(each)) for each in (one, suffix[-1])]
            tried[f"ends texts with {names[0]} in place of {names[1]}"] = (prefix, (*suffix[:-1], one))
    for sentence, (before, after) in tried.items():
        if max((*before, *after), default=0) >= checkpoint.vocabulary_size:
            continue
        segments = checkpoint.segments
        if segments is not None:
            segments = SegmentIds(
                (segments.text,) * len(before), segments.text, (segments.text,) * len(after), segments.padding
            )
        yield reading.changed(
            "special tokens",
            sentence,
            checkpoint=replace(checkpoint, prefix_ids=before, suffix_ids=after, segments=segments),
        )


def _special_ids(checkpoint: Checkpoint) -> list[int]:
    """Ids of tokens that are special: those with a part of their own, and those that the tokenizer has besides."""
    tokenizer = checkpoint.tokenizer
    added = [number for number, token in getattr(tokenizer, "added_tokens_decoder", {}).items() if token.special]
    return list(dict.fromkeys([*tokenizer.all_special_ids, *added]))


def _said_of_whole(checkpoint: Checkpoint) -> str:
    """Attention to all of a text, in words of what the model has instead."""
    config = checkpoint.model.config.get_text_config()
    window = next((size for name in WINDOWS if isinstance(size := getattr(config, name, None), int) and size > 0), None)
    if window is not None and not getattr(config, "is_causal", False) and not getattr(config, "is_decoder", False):
        return f"lets tokens see all of a text, beyond the window of {window:,} tokens that some layers have"
    return "lets tokens see those after them, too"


def _counts_places_behind_padding(checkpoint: Checkpoint) -> bool:
    """Whether the first token's position is not 0, as RoBERTa's."""
    embeddings = getattr(checkpoint.model, "embeddings", None)
    table = getattr(embeddings, "position_embeddings", None)
    return getattr(table, "padding_idx", None) is not None and bool(
        getattr(embeddings, "padding_idx", None) is not None
    )


def _segments(reading: Reading) -> Iterator[Reading]:
    """Every token in the other segment, for models that have two."""
    checkpoint = reading.checkpoint
    segments = checkpoint.segments
    if segments is not None and getattr(checkpoint.model.config, "type_vocab_size", 0) == 2:
        before, after = (tuple(1 - one for one in ids) for ids in (segments.before, segments.after))
        other = SegmentIds(before, 1 - segments.text, after, segments.padding)
        sentence = "puts every token in the other segment (token_type_ids)"
        yield reading.changed("segments", sentence, checkpoint=replace(checkpoint, segments=other))


def _limits(reading: Reading) -> Iterator[Reading]:
    checkpoint = reading.checkpoint
    positions = position_limit(checkpoint.model) or NO_LIMIT
    special = len(checkpoint.prefix_ids) + len(checkpoint.suffix_ids)
    known = {*LIMITS, positions, reading.limit, int(min(checkpoint.tokenizer.model_max_length, NO_LIMIT))}
    # Some count the text's own tokens only, with or without special tokens around them.
    known |= {limit + by for limit in known for by in (2, -2)}
    for limit in sorted(known):
        if limit > positions or limit <= special:
            continue
        for side in SIDES:
            if (limit, side) != (reading.limit, reading.side) and (limit < NO_LIMIT or side == "right"):
                yield with_limit(reading, limit, side)
