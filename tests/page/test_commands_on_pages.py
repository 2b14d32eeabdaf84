"""Of an advice, what is typed is set as code, and the rest reads as a sentence."""

from __future__ import annotations

import pytest

from embaudit.pages.html import pieces


@pytest.mark.parametrize(
    ("advice", "typed"),
    [
        ("embaudit screen FILE", ["embaudit screen FILE"]),
        ("For the reason: embaudit parity /a/b --with 'my model'", ["embaudit parity /a/b --with 'my model'"]),
        ("embaudit why says of each where it is lost.", ["embaudit why"]),
        ("Compare the two: embaudit compare.", ["embaudit compare"]),
        ("Give queries: --queries FILE, and the function.", ["--queries FILE"]),
        ("embaudit audit CHECKPOINT --corpus sts=FILE", ["embaudit audit CHECKPOINT --corpus sts=FILE"]),
        ("Read embaudit/x.py, and `pip install torch`.", ["pip install torch"]),
        ("Say so next time: --text '{title} {text}'", ["--text '{title} {text}'"]),
        ("embaudit query length-pairs", ["embaudit query length-pairs"]),
        ("Serve it in float32.", []),
        ("embaudit check packaged:all-MiniLM-L6-v2 again.", ["embaudit check packaged:all-MiniLM-L6-v2"]),
        ("embaudit audit X --set sticky.exhaustive=true (slow)", ["embaudit audit X --set sticky.exhaustive=true"]),
        ("(--pairs) or judged queries (--data).", ["--pairs", "--data"]),
        ("", []),
    ],
)
def test_what_is_typed_is_told_apart(advice: str, typed: list[str]) -> None:
    found = pieces(advice)
    assert [text for text, is_typed in found if is_typed] == typed
    assert "".join(text for text, _ in found) == advice.replace("`", "")
