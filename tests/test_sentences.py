"""Whatever a reason ends with, the sentence that it is put into ends once."""

from __future__ import annotations

import re
from collections.abc import Collection

import pytest

from embaudit.declared.rule import Finding
from embaudit.words.errors import EmbauditError, UsageError, hint, one_line
from embaudit.words.sentences import ended, first_of, listing, punctuated, within

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
        ("1 of 60 rows have no vector, row 1 first.", "1 of 60 rows has no vector, row 1 first."),
        ("It differs. 1 of them are of others.", "It differs. 1 of them is of others."),
        ("1 of 10 rows with a text were not built by it.", "1 of 10 rows with a text was not built by it."),
        ("11 of them are of others, 2.1 of them are not.", "11 of them are of others, 2.1 of them are not."),
        ("Nothing answers: Connection refused..", "Nothing answers: Connection refused."),
        ("It is no JSON (Expecting value.)", "It is no JSON (Expecting value)."),
        ("It is no JSON (Expecting value.).", "It is no JSON (Expecting value)."),
        ("Cut after 240 … characters of a message …", "Cut after 240 … characters of a message …"),
        ("It is cut ….", "It is cut …"),
        ("Look in ../folder or in .embaudit, at 1..2", "Look in ../folder or in .embaudit, at 1..2"),
        ("pip install .", "pip install ."),
        ("Look at Tom &amp;.", "Look at Tom &amp;."),
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


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("It gives 1 vectors for 1 texts.", "It gives 1 vector for 1 text."),
        ("1 texts are too few; 1 queries have no text.", "1 text is too few; 1 query has no text."),
        ("1 copies leave no room in 1 tokens", "1 copy leaves no room in 1 token"),
        ("11 texts, 0.1 texts, 1,001 texts, 2.1 rows, x1 rows, -1 rows", None),
        ("1 − cosine, 1 % of pairs, 1 s, the 1 text, 1 of 1 texts of a kind get none", None),
        ("All 1 tensors in 1 layers", "All 1 tensor in 1 layer"),
    ],
)
def test_one_thing_is_no_plural(text: str, clean: str | None) -> None:
    assert punctuated(text) == (text if clean is None else clean)
    assert UsageError(text, next_step=text).happened == (text if clean is None else clean)


def test_a_list_without_names_is_said_to_be_empty() -> None:
    assert listing(["a", "b"]) == "a, b"
    assert listing([]) == "none"
    assert hint("x", []) == "; there are none"
    assert hint("x", ["y", "long"]) == "; there are y, long"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", ""),
        ("  ", "  "),
        ("no end", "no end."),
        ("one.", "one."),
        ("why?", "why?"),
        ("cut…", "cut…"),
        ("(x)", "(x)."),
    ],
)
def test_what_a_finding_says_ends(given: str, expected: str) -> None:
    assert ended(given) == expected


@pytest.mark.parametrize(
    ("sentence", "inside"),
    [
        *(("The server did not answer.", "the server did not answer."), ("A text differs.", "a text differs.")),
        *(("HNSW misses rows.", "HNSW misses rows."), ("/a/b is empty.", "/a/b is empty."), ("1 row.", "1 row.")),
        *(("OLD's index stays.", "OLD's index stays."), ("", ""), ("I/O failed.", "I/O failed.")),
    ],
)
def test_a_sentence_inside_another_begins_small(sentence: str, inside: str) -> None:
    assert within(sentence) == inside


@pytest.mark.parametrize(
    ("names", "most", "said"),
    [
        (["a", "b"], 3, "a, b"),
        (["a", "b", "c"], 3, "a, b, c"),
        (["a", "b", "c", "d"], 3, "a, b, c and 1 more"),
        (range(2_000), 1, "0 and 1,999 more"),
        ({"a": 1, "b": 2}, 1, "a and 1 more"),
        ([], 3, ""),
    ],
)
def test_the_first_names_are_said_with_how_many_there_are_besides(
    names: Collection[object], most: int, said: str
) -> None:
    assert first_of(names, most) == said
