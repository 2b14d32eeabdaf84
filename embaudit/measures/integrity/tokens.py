"""The tokenizer that is loaded against its files: ids by tokenizer.json, special tokens, ids and rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.agreement import KINDS
from embaudit.checkpoint.files import read_object
from embaudit.checkpoint.tokenizer import TOKENIZER_CONFIG
from embaudit.checkpoint.vocabulary import ids_without_row, special_ids
from embaudit.declared.rule import Finding, Level, Rule, percent
from embaudit.measures.integrity.letter_case import UNKNOWN_WORDS, ids_alone, words

if TYPE_CHECKING:
    from tokenizers import Tokenizer

TOKENIZER_JSON = "tokenizer.json"
# Other ids for these change every text; for the other kinds (control characters, spaces, markers) only odd ones.
EVERYDAY = ("plain", "capitals", "digits", "punctuation", "one token")
# Encoders that were all trained with special tokens around a text.
NEED_SPECIALS = {
    *("albert", "bert", "big_bird", "bigbird_pegasus", "camembert", "convbert"),
    *("data2vec-text", "deberta", "deberta-v2", "distilbert", "electra", "ernie"),
    *("esm", "fnet", "funnel", "ibert", "layoutlm", "longformer"),
    *("luke", "megatron-bert", "mobilebert", "modernbert", "mpnet", "mra"),
    *("nomic_bert", "nystromformer", "rembert", "roberta", "roberta-prelayernorm", "roc_bert"),
    *("roformer", "squeezebert", "xlm-roberta", "xlm-roberta-xl", "xmod", "yoso"),
}
VOCABULARIES = ("vocab.txt", "vocab.json")
TOKENS_NAMED = 3
DIGITS = "1 2 3 4 5 6 7 8 9"
# What marks pieces of words, and the share of entries from which on some must be given for English words.
MARKS, MARKED = ("##", "▁", "Ġ"), 0.1
# Words in a sentence; the share of sentences that are unknown, and the share of words that may be.
IN_A_SENTENCE, LOST, KNOWN = 12, 0.5, 0.05
TOKENIZER_IDS = Rule(
    "tokenizer_ids",
    look_if="other scripts only; vocab.txt or vocab.json with other ids",
    problem_if="other ids than tokenizer.json for plain text",
    reason="sentence-transformers reads texts by the one, servers that read tokenizer.json by the other",
)
UNUSED_PIECES = Rule(
    "unused_pieces",
    problem_if=f"{percent(MARKED)} of the entries begin with ##, ▁ or Ġ and none of them is given",
    reason="words are put together from other pieces than in training",
)
UNREAD_SCRIPTS = Rule(
    "unread_scripts",
    look_if="a script or digits that are not read though the vocabulary has their letters",
    reason="texts that differ in nothing else get one vector",
)
SPECIAL_TOKENS = Rule(
    "special_tokens",
    look_if="around a text, other special tokens than one at each end (families that are all trained so)",
    problem_if="none at all there; no CLS for cls pooling; no end token for last-token pooling though it is declared",
    reason="texts are read without what the model was trained with",
)
IDS_BEYOND_ROWS = Rule(
    "ids_beyond_rows",
    look_if="ids of special tokens without a row",
    problem_if="ids of ordinary tokens without a row",
    reason="a text with such a token cannot be encoded",
)


def token_findings(checkpoint: Checkpoint) -> list[Finding]:
    """Findings about ids, special tokens and rows, or one ``ok``."""
    findings = [
        *_ids_findings(checkpoint),
        *_list_findings(checkpoint),
        *(_split_findings(checkpoint) or _script_findings(checkpoint)),
        *_special_findings(checkpoint),
        *_row_findings(checkpoint),
    ]
    return findings or [
        TOKENIZER_IDS.finding(
            "ok",
            f"The tokenizer gives the ids of {TOKENIZER_JSON} for {sum(map(len, KINDS.values()))} hard texts, adds "
            f"{_tokens(checkpoint, (*checkpoint.prefix_ids, *checkpoint.suffix_ids)) or 'no special tokens'}, and "
            f"{'every id has' if not ids_without_row(checkpoint.tokenizer, checkpoint.vocabulary_size) else 'has'} "
            f"a row among {checkpoint.vocabulary_size}."
            if _file(checkpoint) is not None
            else f"Every id of the tokenizer has a row among {checkpoint.vocabulary_size}; there is no "
            f"{TOKENIZER_JSON} to compare it with.",
            value=0.0,
        )
    ]


def _ids_findings(checkpoint: Checkpoint) -> list[Finding]:
    """The ids of hard texts by the loaded class and by the tokenizers library from the file alone."""
    file = _file(checkpoint)
    if file is None:
        return []
    call = dict(checkpoint.recipe.call)
    differing: dict[str, tuple[str, list[int], list[int]]] = {}
    for kind, texts in KINDS.items():
        for text in texts:
            prepared = text.lower() if checkpoint.recipe.is_lowercased else text
            ours = list(checkpoint.tokenizer(text, truncation=False, padding=False, verbose=False, **call)["input_ids"])
            theirs = list(file.encode(prepared, add_special_tokens=call.get("add_special_tokens", True)).ids)
            # Lower-casing before the library reads special tokens changes them; the loaded class lower-cases behind it.
            if ours != theirs and not (checkpoint.recipe.is_lowercased and kind == "special tokens"):
                differing.setdefault(kind, (text, ours, theirs))
    if not differing:
        return []
    everyday = [kind for kind in differing if kind in EVERYDAY]
    kind = (everyday or list(differing))[0]
    text, ours, theirs = differing[kind]
    declared = _declared(checkpoint)
    name = declared.get("tokenizer_class", type(checkpoint.tokenizer).__name__)
    return [
        TOKENIZER_IDS.finding(
            "problem" if everyday else "look",
            f"{type(checkpoint.tokenizer).__name__} ({TOKENIZER_CONFIG}: {name}) and {TOKENIZER_JSON} give other ids "
            f"for texts of {len(differing)} of {len(KINDS)} kinds ({', '.join(differing)}): {text!r} is "
            f"{_tokens(checkpoint, ours[:8])} by the one and {_tokens(checkpoint, theirs[:8])} by the other.",
            meaning="sentence-transformers reads texts by the one, servers that read tokenizer.json by the other. One "
            "of the two is not how the model was trained.",
            advice=f'Find out which one training used. If it was {TOKENIZER_JSON}, write "tokenizer_class": '
            f'"PreTrainedTokenizerFast" into {TOKENIZER_CONFIG}; saving what is loaded now would write the other '
            f"ids into {TOKENIZER_JSON}, too.",
            value=len(differing) / len(KINDS),
        )
    ]


def _list_findings(checkpoint: Checkpoint) -> list[Finding]:
    """A list of the vocabulary beside tokenizer.json, which slow tokenizers and converters read, with other ids."""
    file, folder = _file(checkpoint), checkpoint.resolved.folder / checkpoint.recipe.tokenizer_path
    if file is None:
        return []
    known = file.get_vocab(with_added_tokens=True)
    for name in VOCABULARIES:
        path = folder / name
        if not path.is_file():
            continue
        listed = _listed(path)
        differing = [token for token, number in listed.items() if token in known and known[token] != number]
        if differing:
            first = differing[0]
            return [
                TOKENIZER_IDS.finding(
                    "look",
                    f"{name} and {TOKENIZER_JSON} give other ids to {len(differing)} of {len(listed)} entries: "
                    f"{first!r} is {listed[first]} in the one and {known[first]} in the other.",
                    meaning=f"Programs that read {name} give other ids than those that read {TOKENIZER_JSON}: to one "
                    "of the two, every text is another one.",
                    advice="Find out which one training used, and save it: tokenizer.save_pretrained(FOLDER) writes "
                    "both.",
                    value=len(differing) / len(listed),
                )
            ]
    return []


def _listed(path: Path) -> dict[str, int]:
    """The ids in a vocabulary's own file: by line, or as it says."""
    if path.suffix == ".json":
        return {token: number for token, number in read_object(path).items() if isinstance(number, int)}
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    return {line.rstrip("\r"): number for number, line in enumerate(lines) if line.strip()}


def _split_findings(checkpoint: Checkpoint) -> list[Finding]:
    """Sentences of known words that become unknown, and marks of pieces (##ing, ▁the) that no text gives."""
    tokenizer, known = checkpoint.tokenizer, words()
    sentences = [" ".join(known[start : start + IN_A_SENTENCE]) for start in range(0, len(known), IN_A_SENTENCE)]
    compounds = [one + other for one, other in zip(known[::2], known[1::2], strict=False)]
    alone, together, compound = (ids_alone(checkpoint, texts) for texts in (known, sentences, compounds))
    unknown = tokenizer.unk_token_id
    lost = sum(unknown in ids for ids in together) / len(together)
    if unknown is not None and lost >= LOST and sum(unknown in ids for ids in alone) <= KNOWN * len(alone):
        return [
            UNKNOWN_WORDS.finding(
                "problem",
                f"{lost:.0%} of {len(together)} sentences of English words contain the unknown token, though the words "
                "alone do not: texts are not split into words.",
                meaning="Texts of more than one word lose most of what they say.",
                advice=f"Compare the pre_tokenizer of {TOKENIZER_JSON} with the model that this one was trained from.",
                value=lost,
            )
        ]
    entries = tokenizer.get_vocab()
    given = tokenizer.convert_ids_to_tokens(sorted({number for ids in (*together, *compound) for number in ids}))
    for mark in MARKS:
        marked = sum(token.startswith(mark) and token != mark for token in entries)
        if marked >= MARKED * len(entries) and not any(token.startswith(mark) for token in given):
            return [
                UNUSED_PIECES.finding(
                    "problem",
                    f"{marked} of {len(entries)} entries begin with {mark}, which marks "
                    f"{'pieces inside a word' if mark == '##' else 'the beginning of a word'}, but the tokenizer gives "
                    f"none of them for {len(known)} English words.",
                    meaning="Words are put together from other pieces than in training.",
                    advice=f"Compare continuing_subword_prefix, pre_tokenizer and normalizer of {TOKENIZER_JSON} with "
                    "the model that this one was trained from.",
                    value=marked / len(entries),
                )
            ]
    return []


def _script_findings(checkpoint: Checkpoint) -> list[Finding]:
    """Scripts and digits that give no token but the unknown one, though the vocabulary has them."""
    entries = {token.lstrip("#▁Ġ") for token in checkpoint.tokenizer.get_vocab()}
    unknown = checkpoint.tokenizer.unk_token_id
    texts = (*KINDS["scripts"], DIGITS)
    lost = []
    for text, ids in zip(texts, ids_alone(checkpoint, texts), strict=True):
        letters = [letter for letter in text if letter.isalnum()]
        if 2 * sum(letter in entries for letter in letters) > len(letters) and not {*ids} - {unknown}:
            lost.append(text)
    if not lost:
        return []
    return [
        UNREAD_SCRIPTS.finding(
            "look",
            f"{len(lost)} of {len(texts)} texts in other scripts or of digits give no token but the unknown one, "
            f"though the vocabulary has entries for their letters: {', '.join(lost)}.",
            meaning="What is written so is not read: texts that differ in nothing else get one vector.",
            advice=f"Compare the normalizer and pre_tokenizer of {TOKENIZER_JSON} with the model that this one was "
            "trained from.",
            value=len(lost) / len(texts),
        )
    ]


def _special_findings(checkpoint: Checkpoint) -> list[Finding]:
    """Special tokens that are declared, or that the family needs, and are not around a text."""
    is_off = checkpoint.recipe.call.get("add_special_tokens") is False
    tokenizer, declared = checkpoint.tokenizer, _declared(checkpoint)
    added = {*checkpoint.prefix_ids, *checkpoint.suffix_ids}
    modes = checkpoint.recipe.pooling
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    model_type = getattr(checkpoint.model.config, "model_type", "")
    found: list[tuple[str, str, Level]] = []
    if "cls" in modes and first is not None and first not in checkpoint.prefix_ids[:1]:
        found.append((str(tokenizer.cls_token), "the pooling reads the first token, which it should be", "problem"))
    elif model_type in NEED_SPECIALS and first is not None and last is not None:
        around = checkpoint.prefix_ids, checkpoint.suffix_ids
        token = f"{tokenizer.cls_token} and {tokenizer.sep_token}"
        if is_off:
            found.append((token, f"every {model_type} is trained with them (add_special_tokens is false)", "look"))
        elif not added & {first, last}:
            found.append((token, f"every {model_type} is trained with them", "problem"))
        elif around != ((first,), (last,)):
            found.append((token, f"every {model_type} is trained with one of each, in this order", "look"))
    for key, name in (("add_bos_token", "bos_token"), ("add_eos_token", "eos_token")):
        number = getattr(tokenizer, f"{name}_id", None)
        if not is_off and declared.get(key) is True and number is not None and number not in added:
            # Some classes have always ignored the setting, in training, too; a last token that is another one is worse.
            level: Level = "problem" if "lasttoken" in modes and name == "eos_token" else "look"
            found.append((str(getattr(tokenizer, name)), f"{TOKENIZER_CONFIG} says {key}: true", level))
    return [
        SPECIAL_TOKENS.finding(
            level,
            f"The tokenizer does not put {token} around a text, though {reason}; it adds "
            f"{_tokens(checkpoint, (*checkpoint.prefix_ids, *checkpoint.suffix_ids)) or 'nothing'}.",
            meaning="Texts are read without the tokens that the model was trained with"
            + (", and the pooling reads another token." if {"cls", "lasttoken"} & set(modes) else "."),
            advice=f"Check the post_processor of {TOKENIZER_JSON} against the model that this one was trained from.",
        )
        for token, reason, level in found
    ]


def _row_findings(checkpoint: Checkpoint) -> list[Finding]:
    beyond = ids_without_row(checkpoint.tokenizer, checkpoint.vocabulary_size)
    if not beyond:
        return []
    special = special_ids(checkpoint.tokenizer)
    ordinary = [number for number in beyond if number not in special]
    return [
        IDS_BEYOND_ROWS.finding(
            "problem" if ordinary else "look",
            f"{len(beyond)} ids of the tokenizer, from {beyond[0]} on, have no row among {checkpoint.vocabulary_size} "
            f"input embeddings: {_tokens(checkpoint, beyond[:TOKENS_NAMED])}.",
            meaning="A text with such a token cannot be encoded: the call fails.",
            advice="The tokenizer is another model's, or tokens were added without resize_token_embeddings.",
            value=float(len(beyond)),
        )
    ]


def _file(checkpoint: Checkpoint) -> Tokenizer | None:
    from tokenizers import Tokenizer

    path = checkpoint.resolved.folder / checkpoint.recipe.tokenizer_path / TOKENIZER_JSON
    if not path.is_file():
        return None
    read = Tokenizer.from_file(str(path))
    read.no_truncation()
    read.no_padding()
    return read


def _declared(checkpoint: Checkpoint) -> dict[str, Any]:
    path = checkpoint.resolved.folder / checkpoint.recipe.tokenizer_path / TOKENIZER_CONFIG
    return read_object(path) if path.is_file() else {}


def _tokens(checkpoint: Checkpoint, ids: Sequence[int]) -> str:
    return " ".join(map(str, checkpoint.tokenizer.convert_ids_to_tokens(list(ids))))
