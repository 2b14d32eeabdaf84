"""What became of the base's weights: nothing, a part of them, or something that has nothing to do with them.

The input embeddings of both: which rows moved, whose they are, and whether added ones were trained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Literal

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.vocabulary import special_ids
from embaudit.checkpoint.vocabulary.script import is_marker, script_of
from embaudit.declared.rule import Finding, Rule
from embaudit.measures.integrity.certificate import CHUNK
from embaudit.measures.integrity.lattice import can_tell, look_at
from embaudit.questions.change.tensors import (
    BlockChange,
    SharedRows,
    TensorChange,
    block_of,
    by_block,
    compare_tensors,
    parts,
    read_by_vectors,
    table_name,
    unread_changes,
)

if TYPE_CHECKING:
    import torch


# A row that was replaced has nothing to do with the base's; one that came from another place is still close to it.
REPLACED, SAME_ROW = 0.5, 0.9
# Replaced rows that are looked for elsewhere, and below which nothing is said.
SEARCHED, FEWEST = 200, 20
# transformers fills added rows with the mean of the others and hardly any spread (resize_token_embeddings).
AS_THE_MEAN = 0.01
TOKENS_NAMED = 5
ADDED = Rule(
    "added_rows",
    look_if="most rows that were added are the mean of the base's, or zero",
    reason="as `resize_token_embeddings` leaves them: the new tokens mean nothing yet",
)
MISPLACED = Rule(
    "misplaced_rows",
    problem_if="most of the rows that were replaced hold what another row of the base holds",
    reason="the weights belong to another tokenizer",
)


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
        elsewhere: how many rows, of those that were looked for, hold what another row of the base holds; 0 unless most
            of them do.
        searched: how many were looked for: replaced ones, evenly chosen.
    """

    compared: int
    moved: int
    kinds: Mapping[str, int]
    added: int
    added_tokens: tuple[str, ...]
    as_made: int
    removed: int
    elsewhere: int = 0
    searched: int = 0


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
    mean = old.mean(dim=0, dtype=torch.float32).cpu()
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
        *_elsewhere(new, old, shared, moved),
    )


def _elsewhere(new: torch.Tensor, old: torch.Tensor, shared: SharedRows, moved: torch.Tensor) -> tuple[int, int]:
    """How many of the replaced rows are another row of the base, and how many were looked for."""
    import torch

    places = torch.nonzero(moved).flatten()
    places = places[:: max(1, len(places) // (10 * SEARCHED))]
    ours, theirs = (
        table[(places if ids is None else ids[places]).to(table.device)].float().cpu()
        for table, ids in ((new, shared.tuned), (old, shared.base))
    )
    replaced = ours[torch.cosine_similarity(ours, theirs) < REPLACED]
    replaced = torch.nn.functional.normalize(replaced[:: max(1, len(replaced) // SEARCHED)])
    if len(replaced) < FEWEST:
        return 0, len(replaced)
    nearest = torch.full((len(replaced),), -1.0)
    for part in torch.split(old, CHUNK // old.shape[1]):
        cosines = replaced @ torch.nn.functional.normalize(part.float().cpu()).T
        nearest = torch.maximum(nearest, cosines.max(dim=1).values)
    found = int((nearest > SAME_ROW).sum())
    return (found if 2 * found > len(replaced) else 0), len(replaced)


def row_findings(rows: RowChange) -> list[Finding]:
    """Findings about rows of other tokens and about added ones; how many moved is part of what is said of weights."""
    found = []
    if rows.elsewhere:
        found.append(
            MISPLACED.finding(
                "problem",
                f"The rows of the input embeddings are in another order than the base's: {rows.elsewhere} of "
                f"{rows.searched} rows that were looked for hold what the base holds for another token.",
                meaning="The network reads other words than the text says.",
                advice="The weights belong to another tokenizer: save the one that they were trained with beside them.",
                value=rows.elsewhere / rows.searched,
            )
        )
    return [*found, *_of_added(rows)]


def _of_added(rows: RowChange) -> list[Finding]:
    if not rows.added:
        return []
    named = f" ({' '.join(rows.added_tokens)}{' …' if rows.added > len(rows.added_tokens) else ''})"
    sentence = (
        f"The input embeddings have {rows.added:,} rows that the base has not{named if rows.added_tokens else ''}"
    )
    if 2 * rows.as_made < rows.added:
        return [ADDED.finding("ok", f"{sentence}.", value=float(rows.added))]
    return [
        ADDED.finding(
            "look",
            f"{sentence}, and {rows.as_made:,} of them are as resize_token_embeddings leaves them: all alike.",
            meaning="The new tokens mean nothing yet: a text that contains one loses what its pieces said.",
            advice="Train on texts that contain them, or save the checkpoint with the base's tokenizer and rows.",
            value=float(rows.as_made),
        )
    ]


# Cosine of a matrix with the base's. Independent matrices of 1 024 entries stay within ±.1 (three deviations), and
# tuning, even with noise of half a matrix's spread, keeps it above .8.
UNRELATED, ALIKE = 0.1, 0.8
# Of a block's matrices, and of the base's numbers that have a counterpart.
MOST = 0.5
# Whether there is a change that a vector can depend on: none, one of the values, or one that cannot be compared.
Extent = Literal["nothing", "something", "incomparable"]


@dataclass(frozen=True)
class WeightChange:
    """All tensors that a vector depends on.

    Attributes:
        table: the name of the input embeddings.
        rows: of the input embeddings; None if they cannot be compared.
        unread: names of tensors of the file that changed and that no vector depends on; only looked for if nothing
            else has changed.
        replaced: blocks of which at least half of the matrices have nothing to do with the base's.
        random: those of them whose matrices are noise.
        places: blocks that hold what another block of the base holds, and that one's name.
    """

    tensors: tuple[TensorChange, ...]
    table: str
    rows: RowChange | None
    unread: tuple[str, ...]
    replaced: tuple[str, ...]
    random: tuple[str, ...]
    places: tuple[tuple[str, str], ...]

    @property
    def blocks(self) -> list[BlockChange]:
        return by_block(list(self.tensors))

    @property
    def compared(self) -> int:
        return sum(tensor.compared for tensor in self.tensors)

    @property
    def comparable(self) -> float:
        """The share of the numbers in layers that have a counterpart, of those of the checkpoint with fewer."""
        inside = [tensor for tensor in self.tensors if tensor.is_in_layer]
        fewest = min(sum(size_of(getattr(tensor, side)) for tensor in inside) for side in ("shape", "before"))
        return sum(tensor.compared for tensor in inside) / fewest if fewest else float(not inside)

    @property
    def extent(self) -> Extent:
        if self.comparable < MOST:
            return "incomparable"
        is_nothing = all(
            tensor.status in ("same", "rounded")
            or (tensor.status == "resized" and size_of(tensor.shape) < size_of(tensor.before))
            for tensor in self.tensors
        )
        return "nothing" if is_nothing else "something"


def compare_weights(tuned: Checkpoint, base: Checkpoint, shared: SharedRows) -> WeightChange:
    """Compare everything that a vector depends on, and if nothing changed, the rest of the files."""
    tensors = tuple(compare_tensors(tuned, base, shared))
    ours = read_by_vectors(tuned)
    found = WeightChange(tensors, table_name(tuned, ours), compare_rows(tuned, base, shared), (), (), (), ())
    if found.extent == "nothing":
        return replace(found, unread=tuple(unread_changes(tuned, base)))
    told = {tensor.name for tensor in tensors if tensor.cosine is not None and can_tell(ours[tensor.name])}
    theirs = read_by_vectors(base)
    replaced, random, places = [], [], []
    for block in found.blocks:
        matrices = [tensor for tensor in block.tensors if tensor.name in told]
        unrelated = [tensor for tensor in matrices if abs(tensor.cosine or 0.0) < UNRELATED]
        if not unrelated or len(unrelated) < MOST * len(matrices):
            continue
        replaced.append(block.name)
        if (place := _place_in_base(block.name, ours, theirs)) is not None:
            places.append((block.name, place))
        elif sum(look_at(ours[tensor.name]).is_noise for tensor in unrelated) >= MOST * len(unrelated):
            random.append(block.name)
    return replace(found, replaced=tuple(replaced), random=tuple(random), places=tuple(places))


def _place_in_base(name: str, ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> str | None:
    """The block of the base that holds what a block of the tuned checkpoint holds; None if there is none."""
    import torch

    inside = [part.removeprefix(f"{name}.") for part in ours if part.startswith(f"{name}.")]
    largest = max(inside, key=lambda part: ours[f"{name}.{part}"].numel())
    values = ours[f"{name}.{largest}"].float().flatten().cpu()
    stack = name.rpartition(".")[0]
    for other in dict.fromkeys(block_of(part) for part in theirs if part.startswith(f"{stack}.")):
        candidate = theirs.get(f"{other}.{largest}")
        if other == name or candidate is None or candidate.numel() != values.numel():
            continue
        if float(torch.cosine_similarity(values, candidate.float().flatten().cpu(), dim=0)) > ALIKE:
            return other
    return None


def size_of(shape: tuple[int, ...] | None) -> int:
    return 0 if shape is None else prod(shape)
