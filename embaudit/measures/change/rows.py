"""The input embeddings of both: which rows moved, whose they are, and whether added ones were trained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from embaudit.checkpoint import Checkpoint
from embaudit.finding import Finding
from embaudit.measures.change.tensors import SharedRows, parts
from embaudit.vocabulary.entries import special_ids
from embaudit.vocabulary.origin import is_marker
from embaudit.vocabulary.script import script_of

RULE = "added_rows"
# transformers fills added rows with the mean of the others and hardly any spread (resize_token_embeddings).
AS_THE_MEAN = 0.01
TOKENS_NAMED = 5


@dataclass(frozen=True)
class RowChange:
    """What happened to the rows of the input embeddings.

    Attributes:
        compared, moved: rows of both.
        kinds: how many moved rows are of special tokens, of reserved ones ([unused7], or without a token), and of each
            script.
        added: rows that the base does not have; ``added_tokens`` names the first that have a token.
        as_made: how many of them are as transformers makes them: the mean of the base's rows, or zero.
        removed: rows that only the base has.
    """

    compared: int
    moved: int
    kinds: Mapping[str, int]
    added: int
    added_tokens: tuple[str, ...]
    as_made: int
    removed: int


def compare_rows(tuned: Checkpoint, base: Checkpoint, shared: SharedRows) -> RowChange | None:
    """None if the rows of the two have another length."""
    import torch

    new, old = (checkpoint.model.get_input_embeddings().weight.detach() for checkpoint in (tuned, base))
    if new.shape[1:] != old.shape[1:]:
        return None
    moved = torch.cat([(ours != theirs).any(dim=1) for ours, theirs, _ in parts(new, old, shared)])
    ids = torch.arange(len(moved)) if shared.tuned is None else shared.tuned
    token_of = {number: token for token, number in tuned.tokenizer.get_vocab().items()}
    special = special_ids(tuned.tokenizer)

    def kind(number: int) -> str:
        token = token_of.get(number, "")
        if number in special:
            return "special"
        return "reserved" if not token or is_marker(token) else script_of(token)

    kept = torch.zeros(len(new), dtype=torch.bool)
    kept[ids] = True
    added = torch.nonzero(~kept).flatten()
    mean = old.float().mean(dim=0).cpu()
    rows = new[added.to(new.device)].float().cpu()
    distance = (rows - mean).norm(dim=1)
    is_as_made = (distance < AS_THE_MEAN * mean.norm()) | ~rows.any(dim=1)
    named = [token_of[number] for number in added.tolist() if number in token_of]
    return RowChange(
        len(moved),
        int(moved.sum()),
        dict(Counter(kind(number) for number in ids[moved].tolist()).most_common()),
        len(added),
        tuple(named[:TOKENS_NAMED]),
        int(is_as_made.sum()),
        len(old) - len(moved),
    )


def row_findings(rows: RowChange) -> list[Finding]:
    """A finding about added rows; none if there are none. Those that moved are part of what is said of all weights."""
    if not rows.added:
        return []
    named = f" ({' '.join(rows.added_tokens)}{' …' if rows.added > len(rows.added_tokens) else ''})"
    sentence = (
        f"The input embeddings have {rows.added:,} rows that the base has not{named if rows.added_tokens else ''}"
    )
    if 2 * rows.as_made < rows.added:
        return [Finding("ok", f"{sentence}.", name=RULE, value=float(rows.added))]
    return [
        Finding(
            "look",
            f"{sentence}, and {rows.as_made:,} of them are as resize_token_embeddings leaves them: all alike.",
            meaning="The new tokens mean nothing yet: a text that contains one loses what its pieces said.",
            advice="Train on texts that contain them, or save the checkpoint with the base's tokenizer and rows.",
            name=RULE,
            value=float(rows.as_made),
        )
    ]
