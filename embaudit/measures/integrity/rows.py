"""The input embeddings: zero rows, rows that occur twice, rows of random numbers.

A row of random numbers is found by what the other rows have in common. With λ_1 … λ_d the eigenvalues of the second
moments of unit rows and y a row in that basis, scaled to ‖y‖² = d,

    LLR(y) = d/2 · log(mean_j y_j²/λ_j) + ½ Σ_j log λ_j

compares noise of the row's own length with a row like the others. Frequent function words differ from the rest, too,
but resemble each other; rows of noise resemble nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.vocabulary import special_ids
from embaudit.checkpoint.vocabulary.script import is_marker, script_of
from embaudit.declared.rule import Finding, Rule, interval, percent
from embaudit.measures.integrity.blocks import UNTRAINED_EMBEDDINGS
from embaudit.measures.integrity.lattice import Look, can_tell, look_at
from embaudit.statistics import exact_share

if TYPE_CHECKING:
    import torch

# Rows that are tested for noise, evenly chosen; zero and duplicate rows are counted in all.
SAMPLED = 8_192
# Rows whose numbers are in memory in 8 bytes each.
AT_ONCE = 1_024
# Noise is so much likelier (in nats, e^10): trained rows lie below 0, but for function words.
LIKELIER = 10.0
# Of unit rows that have nothing to do with each other, |cos| is below 5/√d.
UNRELATED = 5.0
COMPARED = 1_500
# Dimensions below which a row has too few numbers to tell.
MIN_DIMENSIONS = 64
SCRIPTS_NAMED, TOKENS_NAMED = 3, 5
# Of a script's tested tokens: so many, and this share of them, are not a few that no text contained.
MIN_OF_SCRIPT, MOST_OF_SCRIPT = 8, 0.5
ZERO_ROWS = Rule(
    "zero_rows",
    look=0.01,
    problem=0.15,
    is_share=True,
    look_if=f"{{look}} of ordinary tokens; random rows in {percent(MOST_OF_SCRIPT)} of a script's tokens, from "
    f"{MIN_OF_SCRIPT}",
    problem_if="{problem}",
    reason="below {look} are the few that no text of the training contained; [unused] entries and special tokens do "
    "not count",
)
REPEATED_ROWS = ZERO_ROWS.named("repeated_rows")
UNTRAINED_ROWS = ZERO_ROWS.named("untrained_rows")
ROWS = Rule("embedding_rows", reason="`ok`: how many rows are zero, repeated or random, if they are few")


@dataclass(frozen=True)
class Rows:
    """What was found among the rows of ordinary tokens (neither special nor reserved, with a string).

    Attributes:
        ordinary: how many there are.
        zero: ids of rows of zeros.
        repeated: ids of rows that are equal to a row with a lower id.
        tested, noisy: how many were tested for noise, and the ids that look like it; nothing tested if the table is too
            narrow.
        table: the whole table's look; None if it is too small to tell.
        sampled: the ids that were tested.
    """

    ordinary: int
    zero: list[int]
    repeated: list[int]
    tested: int
    noisy: list[int]
    table: Look | None
    sampled: tuple[int, ...] = ()


def read_rows(checkpoint: Checkpoint) -> Rows:
    """Look at the input embeddings of ordinary tokens."""
    import torch

    E = checkpoint.model.get_input_embeddings().weight.detach().cpu()
    ids = torch.tensor(ordinary_ids(checkpoint, len(E)), dtype=torch.long)
    is_zero = torch.cat([~some.any(dim=1) for some in torch.split(E, SAMPLED)])
    zero = ids[is_zero[ids]]
    sampled = ids[:: max(1, -(-len(ids) // SAMPLED))]
    table = look_at(E) if can_tell(E) else None
    can_test = E.shape[1] >= MIN_DIMENSIONS and len(sampled) >= E.shape[1]
    noisy = _noisy(E[sampled].float()) if can_test else torch.zeros(0, dtype=torch.long)
    return Rows(
        len(ids),
        zero.tolist(),
        _repeated(E, ids, is_zero).tolist(),
        len(sampled) if can_test else 0,
        sampled[noisy].tolist(),
        table,
        tuple(sampled.tolist()) if can_test else (),
    )


def ordinary_ids(checkpoint: Checkpoint, rows: int) -> list[int]:
    """Ids with a row and a string, but no special tokens and no reserved ones ([unused7], <extra_id_3>)."""
    special = special_ids(checkpoint.tokenizer)
    return sorted(
        number
        for token, number in checkpoint.tokenizer.get_vocab().items()
        if number < rows and number not in special and not is_marker(token)
    )


def likelihood_of_noise(rows: torch.Tensor) -> torch.Tensor:
    """LLR of each row of (n, d), in nats: above 0, noise is likelier than a row like the others."""
    import torch

    d = rows.shape[1]
    lengths = rows.norm(dim=1, keepdim=True)
    U = (rows / lengths.clamp(min=1e-12)) * sqrt(d)
    moments = (U.T @ U / len(U)).double()
    eigenvalues, basis = torch.linalg.eigh(moments)
    eigenvalues = eigenvalues.clamp(min=1e-4)
    basis = basis.float()
    scaled = torch.cat([((part @ basis).double().square() / eigenvalues).mean(1) for part in torch.split(U, AT_ONCE)])
    ratio: torch.Tensor = d / 2 * torch.log(scaled) + torch.log(eigenvalues).sum() / 2
    return torch.where(lengths[:, 0] > 0, ratio, -torch.inf)


def row_findings(checkpoint: Checkpoint, rows: Rows) -> list[Finding]:
    """Findings about the table and its rows, or one ``ok``."""
    if rows.table is not None and rows.table.is_noise:
        return [
            UNTRAINED_EMBEDDINGS.finding(
                "problem",
                f"The input embeddings of all {rows.ordinary} tokens are random numbers ({rows.table.distribution}, "
                f"standard deviation {rows.table.std:.3g}): their tails, rows and spectrum are those of independent "
                "numbers.",
                meaning="No token has a meaning of its own: the table was never trained, or not loaded when the model "
                "was saved.",
                advice="Save the checkpoint again where it was trained.",
                value=1.0,
            )
        ]
    found = [
        *_finding(checkpoint, ZERO_ROWS, rows.zero, rows.ordinary, "have an input embedding of zeros"),
        *_finding(checkpoint, REPEATED_ROWS, rows.repeated, rows.ordinary, "have the input embedding of another one"),
        *_finding(checkpoint, UNTRAINED_ROWS, rows.noisy, rows.tested, "have an input embedding of random numbers"),
    ]
    found = found or _of_scripts(checkpoint, rows)
    if found:
        return found
    tested = f", and at most {len(rows.noisy)} of {rows.tested} tested of random numbers" if rows.tested else ""
    return [
        ROWS.finding(
            "ok",
            f"Of {rows.ordinary} ordinary tokens, {len(rows.zero)} have an input embedding of zeros, "
            f"{len(rows.repeated)} that of another token{tested}.",
            value=(len(rows.zero) + len(rows.repeated)) / max(1, rows.ordinary),
        )
    ]


def _finding(checkpoint: Checkpoint, rule: Rule, ids: Sequence[int], of: int, what: str) -> list[Finding]:
    share = len(ids) / of if of else 0.0
    level = rule.level(share)
    if level == "ok":
        return []
    low, high = exact_share(len(ids), of)
    tokens = checkpoint.tokenizer.convert_ids_to_tokens(list(ids))
    scripts = _scripts(checkpoint, ids).most_common(SCRIPTS_NAMED)
    return [
        rule.finding(
            level,
            f"{len(ids)} of {of} ordinary tokens ({share:.1%}{interval(low, high, '.1%')}) {what}: "
            f"{', '.join(map(repr, tokens[:: max(1, len(tokens) // TOKENS_NAMED)][:TOKENS_NAMED]))} …; "
            f"scripts: {', '.join(f'{script} {count}' for script, count in scripts)}.",
            meaning="Texts with these tokens get vectors that say nothing about them.",
            advice="If they matter to you, compare with the checkpoint that this one was made from; "
            "`embaudit audit` finds the tokens that disturb similarities most.",
            value=share,
            low=low,
            high=high,
        )
    ]


def _of_scripts(checkpoint: Checkpoint, rows: Rows) -> list[Finding]:
    """Scripts most of whose few tokens have random rows."""
    if len(rows.noisy) < MIN_OF_SCRIPT:
        return []
    noisy, tested = (_scripts(checkpoint, ids) for ids in (rows.noisy, rows.sampled))
    worst = [
        script
        for script, count in noisy.most_common()
        if count >= MIN_OF_SCRIPT and count >= MOST_OF_SCRIPT * tested[script]
    ]
    return [
        UNTRAINED_ROWS.finding(
            "look",
            f"{noisy[script]} of {tested[script]} tested tokens of the script {script} have an input embedding of "
            "random numbers.",
            meaning="Texts in that script get vectors that say nothing about them.",
            advice="If you serve such texts, compare with the checkpoint that this one was made from.",
            value=noisy[script] / tested[script],
        )
        for script in worst
    ]


def _scripts(checkpoint: Checkpoint, ids: Sequence[int]) -> Counter[str]:
    tokens = checkpoint.tokenizer.convert_ids_to_tokens(list(ids))
    return Counter(script_of(token.lstrip("#▁Ġ")) for token in tokens)


def _noisy(E: torch.Tensor) -> torch.Tensor:
    """Places of rows that look like noise and resemble none of the others that do."""
    import torch

    called = torch.nonzero(likelihood_of_noise(E) > LIKELIER)[:, 0]
    if not len(called):
        return called
    U = torch.nn.functional.normalize(E[called], dim=1)
    others = U[:: max(1, -(-len(U) // COMPARED))]
    cosines = (U @ others.T).abs()
    # A row is compared with itself once, if it is among the others.
    cosines[cosines > 1 - 1e-4] = 0
    return called[cosines.amax(1) < UNRELATED / sqrt(E.shape[1])]


def _repeated(E: torch.Tensor, ids: torch.Tensor, is_zero: torch.Tensor) -> torch.Tensor:
    """Ids of rows that are equal to an earlier one of ``ids`` in every number; rows of zeros are left out."""
    import torch

    bits = {2: torch.int16, 4: torch.int32}.get(E.element_size(), torch.int64)
    generator = torch.Generator().manual_seed(0)
    weights = torch.randint(-(2**62), 2**62, (E.shape[1],), generator=generator)
    # Exact, wrapping: the same bits give the same key wherever they stand.
    keys = torch.cat([(E[some].view(bits).long() * weights).sum(1) for some in torch.split(ids, AT_ONCE)])
    _, places = torch.unique(keys, return_inverse=True)
    order = torch.argsort(places, stable=True)
    same = places[order][1:] == places[order][:-1]
    repeated = order[1:][same & ~is_zero[ids[order[1:]]]]
    return ids[repeated]
