"""Whatever a reason ends with, the sentence that it is put into ends once."""

from __future__ import annotations

import re

import pytest

from embaudit.errors import EmbauditError, UsageError, one_line
from embaudit.finding import Finding
from embaudit.sentences import punctuated

# As libraries and servers end what they say.
REASONS = [
    *("refused", "refused.", "refused..", "refused…", "refused...", "refused!", "refused?", "refused:", "refused: "),
    *(
        "refused;",
        "refused,",
        "refused\n",
        "refused.\n",
        "refused:\n\n",
        "re\nfused",
        "",
        " ",
        "\n",
        ".",
        ":",
        "(refused)",
    ),
    *(
        "(refused.)",
        "'refused.'",
        "see https://a.example/b.",
        "[Errno 111] Connection refused",
        "1.5",
        "a/../b",
        "x. Y",
    ),
]
SENTENCES = ["It fails: {}.", "It fails: {}", "It fails ({}).", "It fails ({})", "It fails: {}. Try again."]
TWO_ENDS = re.compile(r"(?<![./])\.\.(?![./\w])|[…!?]\.(?!\w)|[:,;]\s*\.(?!\w)|\(\s*\)|\s\.(?!\w)|(?<!\.)\.\)\.|\n\.")


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("reason", REASONS)
def test_a_sentence_ends_once(sentence: str, reason: str) -> None:
    for put in (reason, one_line(OSError(reason))):
        said = [EmbauditError(sentence.format(put)).happened, Finding("look", sentence.format(put)).sentence]
        for text in said:
            assert text.startswith("It fails")
            assert not TWO_ENDS.search(text), text
            assert punctuated(text) == text
            assert "refused" in text or "refused" not in reason


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Nothing answers: Connection refused..", "Nothing answers: Connection refused."),
        ("It is no JSON (Expecting value.)", "It is no JSON (Expecting value)."),
        ("It is no JSON (Expecting value.).", "It is no JSON (Expecting value)."),
        ("Cut after 240 … characters of a message …", "Cut after 240 … characters of a message …"),
        ("It is cut ….", "It is cut …"),
        ("Look in ../folder or in .embaudit, at 1..2", "Look in ../folder or in .embaudit, at 1..2"),
        ("pip install .", "pip install ."),
        ("e.g. a.b.c, 0.5, f() and [] ()", "e.g. a.b.c, 0.5, f() and []"),
        ('He said "no.". Then more.', 'He said "no.". Then more.'),
    ],
)
def test_ends_of_sentences(text: str, clean: str) -> None:
    assert punctuated(text) == clean


def test_an_error_is_punctuated_once_more_when_it_is_copied() -> None:
    import pickle

    error = UsageError("It fails: no..", kept="All is kept..", next_step="pip install .")
    assert str(error) == "It fails: no. All is kept. pip install ."
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
