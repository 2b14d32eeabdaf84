"""Defects of the tokenizer: another vocabulary, lost lower-casing, missing special tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.defects.copies import CONFIG, Change, Copy, read_json, seeded, set_json, tensors, together, write
from benchmarks.defects.weights import ROWS

FILE, SETTINGS = "tokenizer.json", "tokenizer_config.json"
# Transformers' BertTokenizer takes only the vocabulary of tokenizer.json; this class takes the whole file.
AS_IN_THE_FILE = set_json(SETTINGS, tokenizer_class="PreTrainedTokenizerFast")
WORDS = r"vocabulary_fit|vocabulary \w+ not belong|tokenizer_ids|other ids|another model"
CASE = r"capital|lower.?cas|letter_case|better_case"
ACCENTS = r"accent|diacrit"
SPECIAL = r"special|\[CLS\]|\[SEP\]"
UNKNOWN = r"\bUNK\b|unknown"


def vocabulary(folder: Path) -> list[str]:
    """The tokens by id."""
    found: dict[str, int] = read_json(folder / FILE)["model"]["vocab"]
    return sorted(found, key=found.__getitem__)


def write_vocabulary(folder: Path, tokens: Sequence[str]) -> None:
    """Give every token its place as its id, in all files; the weights are not told."""
    ids = {token: place for place, token in enumerate(tokens)}
    content = read_json(folder / FILE)
    content["model"]["vocab"] = ids
    for added in content["added_tokens"]:
        added["id"] = ids[added["content"]]
    for token, special in content["post_processor"]["special_tokens"].items():
        special["ids"] = [ids[token]]
    write(folder / FILE, content)
    write(folder / "vocab.txt", "".join(f"{token}\n" for token in tokens))


def reordered(order: Callable[[list[str]], list[str]]) -> Change:
    return lambda folder: write_vocabulary(folder, order(vocabulary(folder)))


def shuffled(share: float) -> Callable[[list[str]], list[str]]:
    """A share of the words (ids from 999: neither special nor unused) under each other's ids."""

    def order(tokens: list[str]) -> list[str]:
        drawn = 999 + torch.randperm(len(tokens) - 999, generator=seeded())
        chosen = drawn[: round(share * len(drawn))].tolist()
        found = list(tokens)
        for place, origin in zip(chosen, [*chosen[1:], chosen[0]], strict=True):
            found[place] = tokens[origin]
        return found

    return order


def alphabetical(tokens: list[str]) -> list[str]:
    """The same words as another model may have them: its five special tokens first, then sorted."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return special + sorted(set(tokens) - set(special))


def shifted(tokens: list[str]) -> list[str]:
    """Every word one id too high, as after a line too many in vocab.txt."""
    return [*tokens[:999], tokens[-1], *tokens[999:-1]]


def in_file(**parts: Any) -> Change:
    """Set parts of tokenizer.json; a dictionary is merged into what is there."""

    def change(folder: Path) -> None:
        content = read_json(folder / FILE)
        for part, value in parts.items():
            content[part] = {**content[part], **value} if isinstance(value, dict) else value
        write(folder / FILE, content)

    return change


def around(*tokens: str) -> Change:
    """What stands around a text: A is the text."""

    def change(folder: Path) -> None:
        parts = [
            {"Sequence": {"id": "A", "type_id": 0}} if token == "A" else {"SpecialToken": {"id": token, "type_id": 0}}
            for token in tokens
        ]
        in_file(post_processor={"single": parts})(folder)
        AS_IN_THE_FILE(folder)

    return change


def fewer_rows(rows: int) -> Change:
    return together(
        tensors(lambda found: {**found, ROWS: found[ROWS][:rows].clone()}),
        set_json(CONFIG, vocab_size=rows),
    )


def other_list(folder: Path) -> None:
    """Another vocab.txt beside a right tokenizer.json: programs that read the list get other ids."""
    write(folder / "vocab.txt", "".join(f"{token}\n" for token in alphabetical(vocabulary(folder))))


NO_LOWERCASE = together(
    in_file(normalizer={"lowercase": False, "strip_accents": True}),
    set_json(SETTINGS, do_lower_case=False, strip_accents=True),
)


def _copy(name: str, change: Change, cause: str, strength: str = "") -> Copy:
    return Copy(name, "tokenizer", change, cause, strength)


TOKENIZER_COPIES = (
    _copy("vocabulary shuffled", reordered(shuffled(1.0)), WORDS, "all words"),
    _copy("vocabulary shuffled", reordered(shuffled(0.1)), WORDS, "10 % of the words"),
    _copy("vocabulary shuffled", reordered(shuffled(0.01)), WORDS, "1 % of the words"),
    _copy("another model's tokenizer", reordered(alphabetical), WORDS, "in alphabetical order"),
    _copy("another model's tokenizer", reordered(shifted), WORDS, "shifted by one"),
    _copy("another vocab.txt beside tokenizer.json", other_list, rf"{WORDS}|vocab\.txt"),
    _copy("lower-casing lost", NO_LOWERCASE, rf"{CASE}|{UNKNOWN}", "in both files"),
    _copy("lower-casing lost", set_json(SETTINGS, do_lower_case=False), rf"{CASE}|{UNKNOWN}", "in the settings"),
    _copy(
        "lower-casing lost",
        together(in_file(normalizer={"lowercase": False}), AS_IN_THE_FILE),
        rf"{CASE}|{UNKNOWN}",
        "in tokenizer.json",
    ),
    _copy(
        "lower-casing lost",
        together(in_file(normalizer=None), AS_IN_THE_FILE),
        rf"{CASE}|{ACCENTS}|{UNKNOWN}|normali",
        "with all that is normalised",
    ),
    _copy(
        "accents kept",
        together(in_file(normalizer={"strip_accents": False}), set_json(SETTINGS, strip_accents=False)),
        ACCENTS,
    ),
    _copy(
        "Chinese characters not split",
        set_json(SETTINGS, tokenize_chinese_chars=False),
        rf"Chinese|\bHan\b|CJK|{WORDS}|{UNKNOWN}",
    ),
    _copy("special tokens dropped", around("A"), SPECIAL, "both"),
    _copy("special tokens dropped", around("[CLS]", "A"), SPECIAL, "[SEP]"),
    _copy("special tokens dropped", around("A", "[SEP]"), SPECIAL, "[CLS]"),
    _copy(
        "special tokens dropped",
        set_json("sentence_bert_config.json", processing_kwargs={"text": {"add_special_tokens": False}}),
        SPECIAL,
        "by a setting",
    ),
    _copy("special tokens exchanged", around("[SEP]", "A", "[CLS]"), SPECIAL),
    _copy("special tokens twice", around("[CLS]", "[CLS]", "A", "[SEP]", "[SEP]"), SPECIAL),
    _copy("long words unknown", together(in_file(model={"max_input_chars_per_word": 6}), AS_IN_THE_FILE), UNKNOWN),
    _copy(
        "pieces not marked",
        together(in_file(model={"continuing_subword_prefix": ""}), AS_IN_THE_FILE),
        rf"{WORDS}|pieces|{UNKNOWN}",
    ),
    _copy("ids beyond the rows", fewer_rows(28_000), r"beyond|no row among|has embeddings for", "last 2 522 rows cut"),
    _copy("words split at nothing", together(in_file(pre_tokenizer=None), AS_IN_THE_FILE), rf"{UNKNOWN}|{WORDS}|split"),
)
