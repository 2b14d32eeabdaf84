"""Capitals and accents: words that become unknown, words that share all ids, lower-casing that is lost or too much."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from embaudit.checkpoint import Checkpoint
from embaudit.declared.rule import Finding, Rule, number, percent
from embaudit.measures.integrity.rows import ordinary_ids

ACCENTED = str.maketrans("aeioun", "áéíöüñ")


@cache
def words() -> tuple[str, ...]:
    """Distinct words in small letters of the embedded pairs of sentences, three ASCII letters or more, in order."""
    source = files("embaudit.corpora.sample") / "sts.csv"
    texts = [text for row in csv.reader(source.read_text("utf-8").splitlines()) for text in row[:2]]
    return tuple(dict.fromkeys(word for text in texts for word in re.findall(r"\b[a-z]{3,}\b", text)))


def accented(word: str) -> str:
    """The word with an accent on its first vowel or n that has one; unchanged if there is none."""
    for place, letter in enumerate(word):
        if letter.translate(ACCENTED) != letter:
            return word[:place] + letter.translate(ACCENTED) + word[place + 1 :]
    return word


def word_forms() -> dict[str, tuple[str, ...]]:
    """The words in small letters, capitalised (River), in capitals (RIVER) and with an accent."""
    plain = words()
    return {
        "small": plain,
        "capital": tuple(word.capitalize() for word in plain),
        "upper": tuple(word.upper() for word in plain),
        "accented": tuple(accented(word) for word in plain),
    }


def ids_alone(checkpoint: Checkpoint, texts: Sequence[str]) -> list[tuple[int, ...]]:
    """The ids of each text by the loaded tokenizer, without special tokens."""
    encoded = checkpoint.tokenizer(
        list(texts), add_special_tokens=False, truncation=False, padding=False, verbose=False
    )
    return [tuple(ids) for ids in encoded["input_ids"]]


# Shares of words. A vocabulary for other languages may lack English words, so unknown words in small letters are only a
# problem for one that has many.
UNKNOWN_LOOK, UNKNOWN_PROBLEM = 0.1, 0.3
KNOWN = 0.05
MANY_WORDS = 1_000
# Of entries with letters: an uncased vocabulary has practically none with a capital, a cased one a fifth.
NO_CAPITALS, CAPITALS = 0.001, 0.05
MIN_ENTRIES = 1_000
LOWER_CASING = Rule(
    "lower_casing",
    look_if=f"a cased vocabulary ({percent(CAPITALS)} of entries have capitals) is lower-cased",
    problem_if=f"capitals become [UNK] in {percent(UNKNOWN_PROBLEM)} of words, or a vocabulary without capitals is not "
    "lower-cased",
    reason="counted on 1 480 ordinary words: lower-casing was lost, or came from elsewhere",
)
UNKNOWN_WORDS = Rule(
    "unknown_words",
    look=UNKNOWN_LOOK,
    is_share=True,
    look_if="{look} of words unknown",
    problem_if=f"{percent(UNKNOWN_PROBLEM)}, in a vocabulary that has {number(MANY_WORDS)} English words; or sentences "
    "of known words become [UNK]",
    reason="a vocabulary for other languages may lack English words",
)
ACCENTS = Rule(
    "accents",
    look_if=f"{percent(UNKNOWN_PROBLEM)} of words become unknown with an accent",
    reason="an uncased model usually strips accents",
)
SHARED_IDS = Rule(
    "shared_ids",
    look=0.01,
    problem=0.05,
    is_share=True,
    look_if="{look} of words have all ids in common with another",
    problem_if=f"{{problem}}, in a vocabulary that has {number(MANY_WORDS)} English words",
    reason="texts that differ by such words get one vector",
)
LETTER_CASE = Rule(
    "letter_case", reason="`ok`: what becomes of the words in small letters, in capitals and with accents"
)


@dataclass(frozen=True)
class Letters:
    """What the tokenizer does to ordinary English words.

    Attributes:
        words: how many.
        unknown: share that contains the unknown token, by form: small, capital (River), upper (RIVER), accented.
        pieces: mean number of tokens, by form.
        shared: share of words in small letters that have all ids in common with another word.
        example: two words that do.
        is_lowercased: River and river have the same ids, for nine words of ten.
        capitals: share of entries with a letter that have a capital one; None for fewer than 1 000 such entries.
        known_words: entries that are ASCII words in small letters.
    """

    words: int
    unknown: dict[str, float]
    pieces: dict[str, float]
    shared: float
    example: tuple[str, str] | None
    is_lowercased: bool
    capitals: float | None
    known_words: int


def read_letters(checkpoint: Checkpoint) -> Letters:
    """Tokenize ordinary words in four forms, each alone and without special tokens."""
    forms = word_forms()
    plain = forms["small"]
    ids = {form: ids_alone(checkpoint, texts) for form, texts in forms.items()}
    unknown = checkpoint.tokenizer.unk_token_id
    by_ids: dict[tuple[int, ...], str] = {}
    shared, example = 0, None
    for word, own in zip(plain, ids["small"], strict=True):
        if own in by_ids:
            shared += 1
            example = example or (by_ids[own], word)
        by_ids.setdefault(own, word)
    alike = sum(one == other for one, other in zip(ids["small"], ids["capital"], strict=True))
    by_id = {number: name for name, number in checkpoint.tokenizer.get_vocab().items()}
    names = [by_id[number] for number in ordinary_ids(checkpoint, checkpoint.vocabulary_size)]
    lettered = [name for name in names if any(letter.isalpha() and letter.isascii() for letter in name)]
    capitals = sum(any(letter.isupper() and letter.isascii() for letter in name) for name in lettered)
    return Letters(
        len(plain),
        {form: sum(unknown in own for own in each) / len(plain) for form, each in ids.items()},
        {form: sum(map(len, each)) / len(plain) for form, each in ids.items()},
        shared / len(plain),
        example,
        alike >= 0.9 * len(plain),
        capitals / len(lettered) if len(lettered) >= MIN_ENTRIES else None,
        sum(name.lstrip("▁Ġ").isascii() and name.lstrip("▁Ġ").isalpha() and name.islower() for name in names),
    )


def letter_findings(checkpoint: Checkpoint, letters: Letters) -> list[Finding]:
    """Findings about words, or one ``ok``."""
    # Where lower-casing was lost, accents are kept as well: one cause, one finding.
    findings = _capital_findings(letters) or _unknown_findings(letters)
    findings += _shared_findings(letters)
    if findings:
        return findings
    changed = " (lower-cased, as its vocabulary is)" if letters.is_lowercased else ""
    return [
        LETTER_CASE.finding(
            "ok",
            f"Of {letters.words} ordinary English words, {letters.unknown['small']:.0%} are unknown in small letters, "
            f"{letters.unknown['upper']:.0%} in capitals{changed}, {letters.unknown['accented']:.0%} with an accent, "
            f"and {letters.shared:.0%} share all ids with another word.",
            value=letters.unknown["upper"],
        )
    ]


def _capital_findings(letters: Letters) -> list[Finding]:
    small, upper = letters.unknown["small"], letters.unknown["capital"]
    has_none = letters.capitals is not None and letters.capitals <= NO_CAPITALS
    becomes_unknown = small <= KNOWN and upper >= UNKNOWN_PROBLEM
    if not letters.is_lowercased and (becomes_unknown or has_none):
        return [
            LOWER_CASING.finding(
                "problem",
                f"{upper:.0%} of {letters.words} ordinary English words become the unknown token when they begin with "
                f"a capital ({small:.0%} in small letters), and a word takes {letters.pieces['capital']:.1f} tokens "
                f"instead of {letters.pieces['small']:.1f}"
                + (
                    ": the vocabulary has no capital letters, and the tokenizer does not lower-case."
                    if has_none
                    else "."
                ),
                meaning="Lower-casing was lost: names, beginnings of sentences and headings are not read.",
                advice="Set do_lower_case to true in tokenizer_config.json and lowercase to true in the normalizer of "
                "tokenizer.json, as in the model that this one was trained from.",
                value=upper,
            )
        ]
    if letters.is_lowercased and letters.capitals is not None and letters.capitals >= CAPITALS:
        return [
            LOWER_CASING.finding(
                "look",
                f"The tokenizer lower-cases every text, but {letters.capitals:.0%} of its entries have capitals.",
                meaning="The model may have been trained on texts with capitals: these entries are never used.",
                advice="Compare do_lower_case (sentence_bert_config.json, tokenizer_config.json) with the model that "
                "this one was trained from.",
                value=letters.capitals,
            )
        ]
    return []


def _unknown_findings(letters: Letters) -> list[Finding]:
    small, with_accent = letters.unknown["small"], letters.unknown["accented"]
    if small >= UNKNOWN_LOOK:
        is_english = letters.known_words >= MANY_WORDS
        return [
            UNKNOWN_WORDS.finding(
                "problem" if is_english and small >= UNKNOWN_PROBLEM else "look",
                f"{small:.0%} of {letters.words} ordinary English words contain the unknown token.",
                meaning="Texts with them lose these words, though the vocabulary has "
                f"{letters.known_words} words in small Latin letters.",
                advice="If you serve English texts, compare the tokenizer files with those of the original model.",
                value=small,
            )
        ]
    if with_accent >= UNKNOWN_PROBLEM:
        return [
            ACCENTS.finding(
                "look",
                f"{with_accent:.0%} of {letters.words} ordinary English words become the unknown token when one letter "
                f"has an accent ({small:.0%} without).",
                meaning="Names and foreign words are not read; an uncased model usually strips accents.",
                advice="Compare strip_accents in the normalizer of tokenizer.json with the original model.",
                value=with_accent,
            )
        ]
    return []


def _shared_findings(letters: Letters) -> list[Finding]:
    if letters.shared < SHARED_IDS.look or letters.example is None:
        return []
    first, second = letters.example
    return [
        SHARED_IDS.finding(
            "problem" if letters.shared >= SHARED_IDS.problem and letters.known_words >= MANY_WORDS else "look",
            f"{letters.shared:.0%} of {letters.words} ordinary English words have all ids in common with another word: "
            f"{first!r} and {second!r}.",
            meaning="Such words cannot be told apart: texts that differ by them get one vector.",
            advice="Look at the normalizer and the model of tokenizer.json: several words become one token.",
            value=letters.shared,
        )
    ]
