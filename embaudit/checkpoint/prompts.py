"""Prompts: what a checkpoint puts before a text ("query: "), and where the text's own tokens begin behind it.

sentence-transformers reads ``prompts`` and ``default_prompt_name`` from ``config_sentence_transformers.json`` and
tokenises prompt and text as one string. A text is encoded as one of three kinds, and its prompt is:

    text        the default prompt: ``encode``
    query       the one called "query": ``encode_query``
    document    the one called "document": ``encode_document``

``encode_query`` and ``encode_document`` never fall back to the default prompt, and "passage" is never reached, because
sentence-transformers gives every checkpoint a "query" and a "document", empty where it declares none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from embaudit.errors import CheckpointError, UsageError
from embaudit.suggest import closest

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TextKind = Literal["text", "query", "document"]
# sentence-transformers gives every checkpoint both, empty where it declares none.
ALWAYS_DECLARED = ("query", "document")
# What nobody would put before a text as it stands, without a colon or a space: a name, and mistyped if it is unknown.
LOOKS_LIKE_A_NAME = re.compile(r"[\w-]+")
# sentence-transformers knows these by name: their files do not say that prompts are left out of the pooling.
INSTRUCTORS = ("hkunlp/instructor-base", "hkunlp/instructor-large", "hkunlp/instructor-xl")


@dataclass(frozen=True)
class Prompts:
    """The prompt of each kind of text, as it stands before it; empty for none."""

    text: str = ""
    query: str = ""
    document: str = ""

    def __bool__(self) -> bool:
        return any(self.as_json().values())

    def as_json(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True)
class AskedPrompts:
    """A user's own prompts, each a declared prompt's name or a text; None: as declared.

    ``text`` goes before queries and documents too, unless they are given their own.
    """

    text: str | None = None
    query: str | None = None
    document: str | None = None


@dataclass(frozen=True)
class PromptTokens:
    """A prompt as a checkpoint's tokenizer reads it.

    Attributes:
        ids: its tokens before a word. A space at its end that becomes part of the word is the word's.
        unpooled: how many positions, from the first, pooling leaves out; 0 where it takes the prompt's tokens in.
    """

    text: str
    ids: tuple[int, ...]
    unpooled: int


NO_PROMPTS = Prompts()
AS_DECLARED = AskedPrompts()


def choose_prompts(settings: Mapping[str, Any], source: Path, asked: AskedPrompts) -> Prompts:
    """The prompts that are applied: the user's own where given, else what the checkpoint declares.

    Args:
        settings: the content of ``config_sentence_transformers.json``; empty without that file.
        source: the file.

    Raises:
        CheckpointError: if the file declares something else than prompts.
        UsageError: if the user names a prompt that is not declared.
    """
    declared = _declared(settings, source)
    default = settings.get("default_prompt_name")
    if default is not None and default not in {*declared, *ALWAYS_DECLARED}:
        raise CheckpointError(
            f"{source} makes {default!r} the default prompt, and declares {_names(declared)}.",
            next_step='Correct it, or choose a prompt yourself: --prompt TEXT, --prompt "" for none.',
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


def prompt_tokens(prompt: str, tokenizer: PreTrainedTokenizerBase, *, is_pooled: bool) -> PromptTokens:
    """Find out how a tokenizer reads a prompt, alone and before a text."""
    if not prompt:
        return PromptTokens("", (), 0)

    def ids_of(text: str, *, special: bool = False) -> list[int]:
        ids: list[int] = tokenizer(text, add_special_tokens=special, truncation=False, padding=False, verbose=False)[
            "input_ids"
        ]
        return ids

    alone, before_a_text = ids_of(prompt), ids_of(f"{prompt}a")
    ids = tuple(alone[: _shared(before_a_text, alone)])
    if is_pooled:
        return PromptTokens(prompt, ids, 0)
    # As sentence-transformers counts, with the special tokens in front: not always len(ids).
    whole = ids_of(prompt, special=True)
    return PromptTokens(prompt, ids, len(whole) - (whole[-1] in tokenizer.all_special_ids))


def _shared(ids: Sequence[int], other: Sequence[int]) -> int:
    """How many ids both begin with."""
    length = 0
    for one, two in zip(ids, other, strict=False):
        if one != two:
            break
        length += 1
    return length


def _declared(settings: Mapping[str, Any], source: Path) -> dict[str, str]:
    found = settings.get("prompts") or {}
    if not isinstance(found, dict) or not all(text is None or isinstance(text, str) for text in found.values()):
        raise CheckpointError(
            f"{source}: prompts should be an object that gives each prompt's name its text.",
            next_step="Correct it, or fetch the checkpoint again.",
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
        f"{option}: this checkpoint declares no prompt called {given!r}; it declares {_names(declared)}.",
        next_step=(f"Did you mean {names[near]}? " if near else "")
        + f"A text of your own is written as it stands before another: {option} '{given}: '",
    )


def _names(declared: Mapping[str, str]) -> str:
    return ", ".join(sorted(declared)) or "none"
