"""The tokenizer that is loaded against its files: ids by tokenizer.json, special tokens, ids and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.files import read_object
from embaudit.checkpoint.hard_texts import KINDS
from embaudit.checkpoint.tokenizer import TOKENIZER_CONFIG
from embaudit.finding import Finding, Level
from embaudit.vocabulary.entries import ids_without_row, special_ids

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
TOKENS_NAMED = 3


def token_findings(checkpoint: Checkpoint) -> list[Finding]:
    """Findings about ids, special tokens and rows, or one ``ok``."""
    findings = [*_ids_findings(checkpoint), *_special_findings(checkpoint), *_row_findings(checkpoint)]
    return findings or [
        Finding(
            "ok",
            f"The tokenizer gives the ids of {TOKENIZER_JSON} for {_count()} hard texts, adds "
            f"{_tokens(checkpoint, (*checkpoint.prefix_ids, *checkpoint.suffix_ids)) or 'no special tokens'}, and "
            f"{'every id has' if not ids_without_row(checkpoint.tokenizer, checkpoint.vocabulary_size) else 'has'} "
            f"a row among {checkpoint.vocabulary_size}."
            if _file(checkpoint) is not None
            else f"Every id of the tokenizer has a row among {checkpoint.vocabulary_size}; there is no "
            f"{TOKENIZER_JSON} to compare it with.",
            name="tokenizer_ids",
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
        Finding(
            "problem" if everyday else "look",
            f"{type(checkpoint.tokenizer).__name__} ({TOKENIZER_CONFIG}: {name}) and {TOKENIZER_JSON} give other ids "
            f"for texts of {len(differing)} of {len(KINDS)} kinds ({', '.join(differing)}): {text!r} is "
            f"{_tokens(checkpoint, ours[:8])} by the one and {_tokens(checkpoint, theirs[:8])} by the other.",
            meaning="sentence-transformers reads texts by the one, servers that read tokenizer.json by the other. One "
            "of the two is not how the model was trained.",
            advice="Find out which one training used, and save it: tokenizer.save_pretrained(FOLDER) writes both.",
            name="tokenizer_ids",
            value=len(differing) / len(KINDS),
        )
    ]


def _special_findings(checkpoint: Checkpoint) -> list[Finding]:
    """Special tokens that are declared, or that the family needs, and are not around a text."""
    if checkpoint.recipe.call.get("add_special_tokens") is False:
        return []
    tokenizer, declared = checkpoint.tokenizer, _declared(checkpoint)
    added = {*checkpoint.prefix_ids, *checkpoint.suffix_ids}
    modes = checkpoint.recipe.pooling
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    model_type = getattr(checkpoint.model.config, "model_type", "")
    found: list[tuple[str, str, Level]] = []
    if "cls" in modes and first is not None and first not in checkpoint.prefix_ids[:1]:
        found.append((str(tokenizer.cls_token), "the pooling reads the first token, which it should be", "problem"))
    elif model_type in NEED_SPECIALS and first is not None and last is not None and not added & {first, last}:
        token = f"{tokenizer.cls_token} and {tokenizer.sep_token}"
        found.append((token, f"every {model_type} is trained with them", "problem"))
    for key, name in (("add_bos_token", "bos_token"), ("add_eos_token", "eos_token")):
        number = getattr(tokenizer, f"{name}_id", None)
        if declared.get(key) is True and number is not None and number not in added:
            # Some classes have always ignored the setting, in training, too; a last token that is another one is worse.
            level: Level = "problem" if "lasttoken" in modes and name == "eos_token" else "look"
            found.append((str(getattr(tokenizer, name)), f"{TOKENIZER_CONFIG} says {key}: true", level))
    return [
        Finding(
            level,
            f"The tokenizer does not put {token} around a text, though {reason}; it adds "
            f"{_tokens(checkpoint, (*checkpoint.prefix_ids, *checkpoint.suffix_ids)) or 'nothing'}.",
            meaning="Texts are read without the tokens that the model was trained with"
            + (", and the pooling reads another token." if {"cls", "lasttoken"} & set(modes) else "."),
            advice=f"Check the post_processor of {TOKENIZER_JSON} against the model that this one was trained from.",
            name="special_tokens",
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
        Finding(
            "problem" if ordinary else "look",
            f"{len(beyond)} ids of the tokenizer, from {beyond[0]} on, have no row among {checkpoint.vocabulary_size} "
            f"input embeddings: {_tokens(checkpoint, beyond[:TOKENS_NAMED])}.",
            meaning="A text with such a token cannot be encoded: the call fails.",
            advice="The tokenizer is another model's, or tokens were added without resize_token_embeddings.",
            name="ids_beyond_rows",
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


def _count() -> int:
    return sum(map(len, KINDS.values()))
