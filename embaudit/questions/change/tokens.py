"""The tokenizers of both: which rows belong together, and whether the same words are read as the same tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.agreement import KINDS
from embaudit.checkpoint.vocabulary import special_ids
from embaudit.checkpoint.vocabulary.script import is_marker
from embaudit.declared.rule import Finding, Level, Rule
from embaudit.measures.integrity.letter_case import word_forms
from embaudit.questions.change.tensors import SharedRows

# Of the ids whose token is another one, so many at most are compared; and below so few nothing can be said.
COMPARED, FEWEST = 2_000, 20
# A row that is still the base's: tuning leaves a cosine well above it, rows of two tokens stay well below.
SAME_ROW = 0.9
RULE = Rule(
    "same_tokens",
    look=0.01,
    problem=0.1,
    is_share=True,
    look_if="{look} of words become other tokens, or get ids whose rows are still those of other tokens",
    problem_if="{problem} of words get such ids",
    reason="a few new entries change how a few words are read; beyond that, it is another tokenizer, and the rows "
    "stayed. Rows that moved with their tokens (pruned, extended) are followed",
)


@dataclass(frozen=True)
class Tokens:
    """How the two tokenizers differ.

    Attributes:
        shared: the rows that belong together.
        added, removed: tokens that only the tuned checkpoint or only the base has.
        words: how many words, in four forms each.
        other: share of words whose tokens differ, by form: small, capital (River), upper (RIVER), accented.
        example: a text that is read differently, as the tuned checkpoint and as the base read it.
        hard: kinds of hard texts that are read differently.
        misplaced: share of words with an id whose row is still that of another token of the base.
    """

    shared: SharedRows
    added: tuple[str, ...]
    removed: tuple[str, ...]
    words: int
    other: Mapping[str, float]
    example: tuple[str, list[str], list[str]] | None
    hard: tuple[str, ...]
    misplaced: float


def compare_tokens(tuned: Checkpoint, base: Checkpoint) -> Tokens:
    """Tokenize ordinary words and hard texts with both, and match their rows by token."""
    ours, theirs = (_entries(checkpoint) for checkpoint in (tuned, base))
    forms = word_forms()
    plain = forms["small"]
    other: dict[str, float] = {}
    example = None
    misplaced_ids = _misplaced(tuned, base, ours, theirs)
    misplaced = 0
    for form, texts in forms.items():
        own = tuned.own_ids(texts)
        one, two = _strings(tuned, own), _strings(base, base.own_ids(texts))
        differing = [place for place in range(len(texts)) if one[place] != two[place]]
        other[form] = len(differing) / len(texts)
        if differing and example is None:
            example = texts[differing[0]], one[differing[0]], two[differing[0]]
        if form == "small":
            misplaced = sum(not misplaced_ids.isdisjoint(ids) for ids in own)
    hard = []
    for kind, texts in KINDS.items():
        one, two = _strings(tuned, tuned.own_ids(texts)), _strings(base, base.own_ids(texts))
        if one != two:
            hard.append(kind)
            example = example or next((text, a, b) for text, a, b in zip(texts, one, two, strict=True) if a != b)
    return Tokens(
        _shared_rows(ours, theirs, is_misplaced=bool(misplaced_ids)),
        _beyond(ours, theirs),
        _beyond(theirs, ours),
        len(plain),
        other,
        example,
        tuple(hard),
        misplaced / len(plain),
    )


def token_findings(tokens: Tokens) -> list[Finding]:
    """One finding: the same tokens or others, and with their own rows or not."""
    if tokens.misplaced >= RULE.look:
        return [
            RULE.finding(
                RULE.level(tokens.misplaced),
                f"{100 * tokens.misplaced:.0f} % of ordinary words get ids whose input embeddings are still those of "
                "other tokens of the base: the tokenizer changed, and the rows stayed where they were.",
                meaning="The network reads other words than the text says.",
                advice="Save the tokenizer that the checkpoint was trained with, most likely the base's.",
                value=tokens.misplaced,
            )
        ]
    worst = max(tokens.other, key=lambda form: tokens.other[form])
    share = tokens.other[worst]
    changed = _changed(tokens)
    if tokens.example is None:
        count = sum(len(texts) for texts in KINDS.values())
        sentence = f"{4 * tokens.words:,} words in small letters, capitals and accents and {count} hard texts are read "
        return [RULE.finding("ok", f"{sentence}as the same tokens as by the base.{changed}", value=0.0)]
    text, one, two = tokens.example
    level: Level = "look" if share >= RULE.look or not any(tokens.other.values()) else "ok"
    where = (
        f"{100 * share:.0f} % of words {_FORMS[worst]}"
        if share >= RULE.look
        else f"some texts ({', '.join(tokens.hard) or worst})"
    )
    sentence = (
        f"The tokenizer reads {where} as other tokens than the base: {text!r} is {_shown(one)}, not {_shown(two)}."
    )
    return [
        RULE.finding(
            level,
            sentence + changed,
            "The network was trained on one of the two readings.",
            "If the tokenizer was not changed on purpose, copy the base's files.",
            share,
        )
    ]


_FORMS = {
    "small": "in small letters",
    "capital": "with a capital letter",
    "upper": "in capitals",
    "accented": "with an accent",
}


def _changed(tokens: Tokens) -> str:
    said = [
        f"{len(names):,} {what} ({_shown(names)})"
        for names, what in ((tokens.added, "were added"), (tokens.removed, "were removed"))
        if names
    ]
    return f" Of its tokens {' and '.join(said)}." if said else ""


def _shown(names: tuple[str, ...] | list[str]) -> str:
    return " ".join(names[:5]) + (" …" if len(names) > 5 else "")


def _entries(checkpoint: Checkpoint) -> dict[str, int]:
    """The ids of all tokens that have a row."""
    rows = checkpoint.vocabulary_size
    return {token: number for token, number in checkpoint.tokenizer.get_vocab().items() if number < rows}


def _beyond(ours: Mapping[str, int], theirs: Mapping[str, int]) -> tuple[str, ...]:
    """Tokens of the one that the other lacks, in the order of their ids."""
    return tuple(sorted(ours.keys() - theirs.keys(), key=ours.__getitem__))


def _strings(checkpoint: Checkpoint, ids: list[list[int]]) -> list[list[str]]:
    return [list(map(str, checkpoint.tokenizer.convert_ids_to_tokens(one))) for one in ids]


def _shared_rows(ours: Mapping[str, int], theirs: Mapping[str, int], *, is_misplaced: bool) -> SharedRows:
    """Rows of the same token, if tokens have moved to other ids and their rows with them; else of the same place."""
    import torch

    common = [token for token in ours if token in theirs]
    if is_misplaced or 2 * len(common) < len(theirs) or all(ours[token] == theirs[token] for token in common):
        return SharedRows()
    return SharedRows(*(torch.tensor([ids[token] for token in common], dtype=torch.long) for ids in (ours, theirs)))


def _misplaced(
    tuned: Checkpoint, base: Checkpoint, ours: Mapping[str, int], theirs: Mapping[str, int]
) -> frozenset[int]:
    """Ids that another token has now, while their rows are still the base's; empty unless most of such rows are."""
    import torch

    one, two = (checkpoint.model.get_input_embeddings().weight.detach() for checkpoint in (tuned, base))
    if one.shape[1] != two.shape[1]:
        return frozenset()
    special = special_ids(base.tokenizer) | special_ids(tuned.tokenizer)
    token_of = {number: token for token, number in ours.items()}
    ids = [
        number
        for token, number in theirs.items()
        if number in token_of and token_of[number] != token and number not in special and not is_marker(token)
    ]
    if len(ids) < FEWEST:
        return frozenset()
    sampled = torch.tensor(ids[:: max(1, len(ids) // COMPARED)], dtype=torch.long)
    same = torch.cosine_similarity(one[sampled.to(one.device)].float().cpu(), two[sampled.to(two.device)].float().cpu())
    return frozenset(ids) if float((same > SAME_ROW).float().mean()) > 0.5 else frozenset()
