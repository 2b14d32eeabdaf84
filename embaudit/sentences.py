"""Ends of sentences where a reason was put into one: libraries and servers end theirs as they like, or say nothing."""

from __future__ import annotations

import re

# What a reason ends with, and what comes of the full stop (or the bracket) that follows it in our sentence.
JOINTS = (
    # A reason that is empty: "cannot be read: ." and "cannot be read ()."
    (re.compile(r"(?:\s*[:,;])+\s*(?=\.(?:\s|$))"), ""),
    (re.compile(r" \(\s*\.?\s*\)"), ""),
    # It ends in a line break, or in an end of its own: one is enough. An ellipsis of three points stays.
    (re.compile(r"[ \t]*[\r\n]+\s*(?=[.)])"), ""),
    (re.compile(r"(?<!\.)\.\.(?=[\s)\"'”’]|$)"), "."),
    (re.compile(r"(…|\.\.\.|[!?])\.(?=\s|$)"), r"\1"),
    # A sentence in brackets that ends ours.
    (re.compile(r"(?<!\.)\.(\)+)(?:\.|(?=\s*$))"), r"\1."),
)


def punctuated(text: str) -> str:
    """The text with one end to each sentence."""
    before = None
    while text != before:
        # One that is mended may leave another.
        before = text
        for joint, end in JOINTS:
            text = joint.sub(end, text)
    return text
