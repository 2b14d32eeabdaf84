"""Prompts: what a checkpoint puts before a text ("query: "), and where the text's own tokens begin.

sentence-transformers reads ``prompts`` and ``default_prompt_name`` from ``config_sentence_transformers.json`` and
tokenises prompt and text as one string. Each of the three kinds of text has its own prompt:

    text        the default prompt: ``encode``
    query       the one called "query": ``encode_query``
    document    the one called "document": ``encode_document``

``encode_query`` and ``encode_document`` never fall back to the default prompt or to "passage", because
sentence-transformers gives every checkpoint a "query" and a "document" prompt, empty if not declared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from embaudit.words.errors import CheckpointError, UsageError, closest

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TextKind = Literal["text", "query", "document"]
# sentence-transformers gives every checkpoint both, empty if not declared.
ALWAYS_DECLARED = ("query", "document")
# Without a colon or space it is hardly literal text, so it must be a name, mistyped if unknown.
LOOKS_LIKE_A_NAME = re.compile(r"[\w-]+")
# sentence-transformers knows by name that these exclude prompts from pooling; their files do not say so.
INSTRUCTORS = ("hkunlp/instructor-base", "hkunlp/instructor-large", "hkunlp/instructor-xl")


@dataclass(frozen=True)
class Prompts:
    """The literal prompt for each kind of text; empty for none."""

    text: str = ""
    query: str = ""
    document: str = ""

    def __bool__(self) -> bool:
        return any(self.as_json().values())

    def as_json(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True)
class AskedPrompts:
    """The user's prompts, each a declared prompt's name or literal text; None: as declared.

    ``text`` also applies to queries and documents unless they have their own.
    """

    text: str | None = None
    query: str | None = None
    document: str | None = None


@dataclass(frozen=True)
class PromptTokens:
    """A prompt as tokenised by a checkpoint.

    Attributes:
        ids: its tokens before a word, without a trailing space that merges with the word.
        unpooled: how many leading positions pooling leaves out; 0 if it includes the prompt's tokens.
    """

    text: str
    ids: tuple[int, ...]
    unpooled: int


NO_PROMPTS = Prompts()
AS_DECLARED = AskedPrompts()


def choose_prompts(settings: Mapping[str, Any], source: Path, asked: AskedPrompts) -> Prompts:
    """The prompts to apply: the user's if given, otherwise the declared ones.

    Args:
        settings: the content of ``config_sentence_transformers.json``; empty without that file.
        source: that file.

    Raises:
        CheckpointError: if the declared prompts are invalid.
        UsageError: if the user names a prompt that is not declared.
    """
    declared = declared_prompts(settings, source)
    default = settings.get("default_prompt_name")
    if default is not None and default not in {*declared, *ALWAYS_DECLARED}:
        raise CheckpointError(
            f"{source} makes {default!r} the default prompt but declares {_names(declared)}.",
            next_step='Correct it, or give a prompt: --prompt TEXT, or --prompt "" for none.',
        )
    served = Prompts(declared.get(default or "", ""), declared.get("query", ""), declared.get("document", ""))
    text, query, document = (
        None if given is None else _named_or_literal(given, declared, option)
        for given, option in (
            (asked.text, "--prompt"),
            (asked.query, "--query-prompt"),
            (asked.document, "--document-prompt"),
        )
    )
    everywhere = served if text is None else Prompts(text, text, text)
    return Prompts(
        everywhere.text,
        everywhere.query if query is None else query,
        everywhere.document if document is None else document,
    )


def prompt_tokens(
    prompt: str, tokenizer: PreTrainedTokenizerBase, call: Mapping[str, Any], *, is_pooled: bool
) -> PromptTokens:
    """Determine how a tokenizer reads a prompt, alone and before a text.

    Args:
        call: further arguments of the tokenizer's call.
    """
    if not prompt:
        return PromptTokens("", (), 0)

    def ids_of(text: str, *, special: bool = False) -> list[int]:
        arguments = {"add_special_tokens": True, **call} if special else {**call, "add_special_tokens": False}
        ids: list[int] = tokenizer(text, truncation=False, padding=False, verbose=False, **arguments)["input_ids"]
        return ids

    alone, before_a_text = ids_of(prompt), ids_of(f"{prompt}a")
    ids = tuple(alone[: _shared(before_a_text, alone)])
    if is_pooled:
        return PromptTokens(prompt, ids, 0)
    # Counted like sentence-transformers, including leading special tokens: not always len(ids).
    whole = ids_of(prompt, special=True)
    return PromptTokens(prompt, ids, len(whole) - (whole[-1] in tokenizer.all_special_ids))


def _shared(ids: Sequence[int], other: Sequence[int]) -> int:
    """Length of the common prefix."""
    length = 0
    for one, two in zip(ids, other, strict=False):
        if one != two:
            break
        length += 1
    return length


def declared_prompts(settings: Mapping[str, Any], source: Path) -> dict[str, str]:
    """Every prompt of ``config_sentence_transformers.json`` by its name, those that nothing applies included."""
    found = settings.get("prompts") or {}
    if not isinstance(found, dict) or not all(text is None or isinstance(text, str) for text in found.values()):
        raise CheckpointError(
            f"{source}: prompts should be an object that maps names to texts.",
            next_step="Correct it, or download the checkpoint again.",
        )
    return {name: text or "" for name, text in found.items()}


def _named_or_literal(given: str, declared: Mapping[str, str], option: str) -> str:
    if given in declared:
        return declared[given]
    if not LOOKS_LIKE_A_NAME.fullmatch(given):
        return given
    names = {name.lower(): name for name in declared}
    near = closest(given.lower(), names)
    raise UsageError(
        f"{option}: this checkpoint has no prompt {given!r}; it declares {_names(declared)}.",
        next_step=(f"Did you mean {names[near]}? " if near else "")
        + f"For a literal prompt, include its punctuation: {option} '{given}: '",
    )


def _names(declared: Mapping[str, str]) -> str:
    return ", ".join(sorted(declared)) or "none"
