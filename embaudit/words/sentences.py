"""Sentences into which something was put: a reason, which libraries and servers end as they like; a list; a number.

``EmbauditError`` and ``Finding`` pass what they say through here, so that no sentence has to guess what it is given.

Untrusted text (names, tokens, reasons) with invisible characters escaped.

Vocabularies, folder names and model cards may contain escape sequences, newlines or direction overrides, which a
terminal, page or table cell would interpret.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from itertools import islice

# What a reason ends with, and what comes of the full stop (or the bracket) that follows it in our sentence.
JOINTS = (
    # A reason that is empty: "cannot be read: ." and "cannot be read ()." The end of "&amp;" is none.
    (re.compile(r"(?:(?<!&amp)(?<!&lt)(?<!&gt)(?<!&quot)\s*[:,;])+\s*(?=\.(?:\s|$))"), ""),
    (re.compile(r" \(\s*\.?\s*\)"), ""),
    # It ends in a line break, or in an end of its own: one is enough. An ellipsis of three points stays.
    (re.compile(r"[ \t]*[\r\n]+\s*(?=[.)])"), ""),
    (re.compile(r"(?<!\.)\.\.(?=[\s)\"'”’]|$)"), "."),
    (re.compile(r"(…|\.\.\.|[!?])\.(?=\s|$)"), r"\1"),
    # A sentence in brackets that ends ours.
    (re.compile(r"(?<!\.)\.(\)+)(?:\.|(?=\s*$))"), r"\1."),
)

# What is counted, and the verbs that follow: "1 texts are" is one text. "1 of 1 texts" may stay.
ADJECTIVES = "distinct|different|hard|judged|labelled|scored|listed|published|staged|served"
NOUNS = (
    "audit|character|check|checkpoint|column|copie|dimension|document|file|finding|head|judgement|layer|note|number|pair|"
    "querie|question|request|row|sentence|setting|shard|table|task|tensor|text|token|vector|word"
)
VERBS = {
    **{"are": "is", "were": "was", "have": "has", "do": "does", "get": "gets", "lie": "lies", "share": "shares"},
    **{"leave": "leaves", "hold": "holds", "differ": "differs", "fail": "fails"},
}
COUNTED = re.compile(
    rf"(?<![\w.,:/=−-])(?<!\d of )1 (?P<what>(?:(?:{ADJECTIVES}) )?(?:{NOUNS})s)\b(?: (?P<verb>{'|'.join(VERBS)})\b)?"
)
# One of several does what one does: "1 of 60 rows have no vector" is one that has none.
ONE_OF = re.compile(
    rf"(?<![\w.,:/=−-])(?P<which>1 of (?:them|[\d,]+ (?:(?:{ADJECTIVES}) )?(?:{NOUNS})s(?: with a text)?)) "
    rf"(?P<verb>{'|'.join(VERBS)})\b"
)
SINGULAR = {"copies": "copy", "queries": "query"}


def listing(names: Iterable[str], empty: str = "none") -> str:
    """Names in a sentence, which does not end where there are none."""
    return ", ".join(names) or empty


def first_of(names: Collection[object], most: int = 3, count: int | None = None) -> str:
    """The first names in a sentence, and how many there are besides.

    Args:
        count: of all, if not all are given.
    """
    count = len(names) if count is None else count
    more = f" and {count - most:,} more" if count > most else ""
    return ", ".join(str(name) for name in islice(names, most)) + more


def ended(text: str) -> str:
    """The text with an end of its own: the reason that it ends in may have none."""
    return text if text.rstrip()[-1:] in ("", *".!?…") else f"{text}."


def within(sentence: str) -> str:
    """A sentence inside another one: with a small letter, unless it begins with an abbreviation, a path or a sign."""
    return sentence[:1].lower() + sentence[1:] if sentence[1:2] == " " or sentence[1:2].islower() else sentence


def punctuated(text: str) -> str:
    """The text with one end to each sentence, and no plural after a 1."""
    text = ONE_OF.sub(lambda found: f"{found['which']} {VERBS[found['verb']]}", COUNTED.sub(_one, text))
    before = None
    while text != before:
        # One that is mended may leave another.
        before = text
        for joint, end in JOINTS:
            text = joint.sub(end, text)
    return text


def _one(found: re.Match[str]) -> str:
    *before, noun = found["what"].split()
    verb = f" {VERBS[found['verb']]}" if found["verb"] else ""
    return " ".join(("1", *before, SINGULAR.get(noun, noun[:-1]))) + verb


def visible(text: object) -> str:
    """Control and other unprintable characters as Python escapes."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in str(text))


# Of a text that is named in a sentence or a cell.
NAMED = 40


def cut(text: str, most: int = NAMED) -> str:
    """The first characters of a text; an ellipsis stands for the rest."""
    return text if len(text) <= most else f"{text[:most]}…"


def quoted(text: str) -> str:
    """The beginning of a text as Python writes it, so that its white space is seen."""
    return repr(cut(text))


def duration(seconds: float) -> str:
    """``48 s``, ``12 min``, ``2.3 h``, ``4.1 days``."""
    for unit, name, form in ((86_400, "days", ".1f"), (3_600, "h", ".1f"), (60, "min", ".0f")):
        if seconds >= 2 * unit or (unit == 3_600 and seconds >= unit):
            return f"{seconds / unit:{form}} {name}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
