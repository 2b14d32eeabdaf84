"""A tokenizer of its own beside an exported file, which servers of that folder read in place of the checkpoint's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.files import read_object, refuse_pointers
from embaudit.checkpoint.hard_texts import KINDS
from embaudit.checkpoint.tokenizer import NO_LIMIT, TOKENIZER_CONFIG
from embaudit.declared.finding import Finding
from embaudit.declared.rule import Rule
from embaudit.words.errors import CheckpointError, one_line
from embaudit.words.shown import quoted

FILE = "tokenizer.json"
TEXTS = tuple(text for some in KINDS.values() for text in some)
RULE = Rule(
    "export_tokenizer",
    look_if="it cannot be read",
    problem_if="the tokenizer beside the file makes other tokens than the checkpoint's, or cuts at another length "
    "than any of the checkpoint's files declares",
    reason="servers of that folder read it",
)


def tokenizer_findings(checkpoint: Checkpoint, folder: Path) -> Iterator[Finding]:
    """Whether the tokenizer of an export's folder reads texts as the checkpoint's file does; nothing if it has none.

    The two files are held against each other, since settings of sentence-transformers are in neither.
    """
    own = checkpoint.resolved.folder / checkpoint.recipe.tokenizer_path
    if folder.resolve() == own.resolve() or not ((folder / FILE).is_file() and (own / FILE).is_file()):
        return
    name = (folder / FILE).relative_to(checkpoint.resolved.folder).as_posix()
    try:
        theirs, ours = _read(folder / FILE), _read(own / FILE)
        limits = [(name, _limit(theirs)), (f"{Path(name).parent}/{TOKENIZER_CONFIG}", _declared(folder))]
        known = {_limit(ours), _declared(own), checkpoint.max_length, NO_LIMIT}
    except CheckpointError as error:
        yield RULE.finding("look", error.happened, "Servers of that folder cannot read texts.", error.next_step)
        return
    for tokenizer in (theirs, ours):
        tokenizer.no_truncation()
        tokenizer.no_padding()
    differing = [text for text in TEXTS if theirs.encode(text).ids != ours.encode(text).ids]
    if differing:
        yield RULE.finding(
            "problem",
            f"{name} makes other tokens of {len(differing)} of {len(TEXTS)} texts than the checkpoint's own, "
            f"{quoted(differing[0])} first.",
            "Servers that read that folder give such texts other vectors.",
            f"Copy the checkpoint's {FILE} there, or remove it.",
            float(len(differing)),
        )
    for file, limit in limits:
        if limit not in known:
            yield RULE.finding(
                "problem",
                f"{file} cuts texts after {limit} tokens, where the checkpoint reads {checkpoint.max_length}.",
                "Servers that read that folder give longer texts other vectors.",
                f"Set its limit to {checkpoint.max_length}.",
                float(limit),
            )


def _read(file: Path) -> Any:
    from tokenizers import Tokenizer

    refuse_pointers(file.parent, [file])
    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # tokenizers raises a bare Exception on a broken file
        raise CheckpointError(
            f"{file} cannot be read: {one_line(error)}", next_step="Download it again, or remove it."
        ) from error


def _limit(tokenizer: Any) -> int:
    return int(tokenizer.truncation["max_length"]) if tokenizer.truncation else NO_LIMIT


def _declared(folder: Path) -> int:
    """``model_max_length``, where a file gives one."""
    path = folder / TOKENIZER_CONFIG
    declared = read_object(path).get("model_max_length") if path.is_file() else None
    return min(int(declared), NO_LIMIT) if isinstance(declared, int | float) and declared > 0 else NO_LIMIT
