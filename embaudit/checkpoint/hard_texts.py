"""Texts that two readings of one checkpoint disagree on first: a few of each kind, each there because something breaks.

Plain sentences agree almost anywhere. Readings part at capitals (lost lower-casing), accents and scripts (another
normalizer or vocabulary), texts of no or one token (special tokens), and long texts (limits and sides of truncation).
"""

from __future__ import annotations

KINDS: dict[str, tuple[str, ...]] = {
    "plain": (
        "The river is long.",
        "A town in the north built its first school beside the old bridge.",
        "Three ships were found in 1923; one of them had no crew, and all of its books were burned.",
    ),
    "capitals": ("HEART AND BRAIN", "Apple sued the US over IT taxes.", "aLtErNaTe CaSe"),
    "accents": ("café naïve Łódź Ångström", "cafe\u0301 nai\u0308ve", "résumé"),
    "scripts": ("今日は雨です。", "Привет, мир", "مرحبا بالعالم", "नमस्ते दुनिया", "안녕하세요"),
    "emoji": ("😀 👩‍👩‍👧 🏳️‍🌈", "ok 👍🏽"),
    "code": (
        "def f(x):\n\treturn {'a': x[0] ** 2}  # square",
        '<div class="a">&amp;</div>',
        "SELECT * FROM t WHERE a <> 'b';",
    ),
    "digits": ("3.14159", "10,000,000 km at 09:30 on 2024-02-29"),
    "punctuation": ("?!…—“”", "a.b,c;d:e"),
    "one token": ("gold", "a"),
    "blank": (" ", "\n\t "),
    "empty": ("",),
    "control characters": ("a\u200bb\u00adc\ufeff", "a\x00b"),
    "special tokens": ("[CLS] gold [SEP] </s> <s> <|endoftext|>", "[MASK] <mask> <pad>"),
    "spaces": ("  gold   iron  ", "gold\n\niron\n"),
}
WORDS = ("river", "Stone", "old", "Bridge", "north", "town", "Water", "iron", "school", "light")


def long_text(words: int) -> str:
    """Distinct sentences of a number of words, so that it matters which end is read."""
    return " ".join(
        f"{WORDS[place % len(WORDS)]} {place}." if place % 7 == 6 else WORDS[place % 10] for place in range(words)
    )
