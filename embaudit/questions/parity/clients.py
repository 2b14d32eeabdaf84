"""What clients do to a text before they send it: tables of it, each row named as the end of "it …".

Where no reading explains a client's vectors, texts may still show its signs: headers, another tokenizer.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote, unquote

import numpy as np

from embaudit.checkpoint import Checkpoint
from embaudit.questions.parity.compare import HALF, ROLES, KindDifference, apart


def without_accents(text: str) -> str:
    return "".join(one for one in unicodedata.normalize("NFD", text) if unicodedata.category(one) != "Mn")


def _uncombined(form: str) -> Callable[[str], str]:
    """Decomposed, without what combines; it keeps marks of class 0 (of emoji), which ``without_accents`` drops."""
    return lambda text: "".join(one for one in _normalised(form)(text) if not unicodedata.combining(one))


def _without(*categories: str) -> Callable[[str], str]:
    """Without characters whose Unicode category begins so."""
    return lambda text: "".join(one for one in text if not unicodedata.category(one).startswith(categories))


def _normalised(form: str) -> Callable[[str], str]:
    return lambda text: unicodedata.normalize(form, text)  # type: ignore[arg-type]


def _filled(filling: str) -> Callable[[str], str]:
    return lambda text: text if text.strip() else filling


# What people write by keyboards for what typesetters write.
TYPEWRITTEN = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "…": "..."})
EMOJI = re.compile("[\U0001f000-\U0001faff\u2600-\u27bf\u200d\ufe0f\u20e3]")
TEXT_CHANGES: dict[str, Callable[[str], str]] = {
    "lower-cases texts": str.lower,
    "upper-cases texts": str.upper,
    "strips white space at the ends of texts": str.strip,
    "replaces newlines by spaces": lambda text: text.replace("\n", " "),
    "replaces tabs by spaces": lambda text: text.replace("\t", " "),
    "replaces tabs and newlines by spaces": lambda text: re.sub(r"[\t\r\n]", " ", text),
    "collapses white space": lambda text: " ".join(text.split()),
    "collapses white space within texts": lambda text: re.sub(r"\s+", " ", text),
    "collapses spaces": lambda text: re.sub(" +", " ", text),
    "collapses newlines": lambda text: re.sub("\n+", "\n", text),
    "removes newlines": lambda text: text.replace("\n", ""),
    "strips newlines at the ends of texts": lambda text: text.strip("\n"),
    "writes newlines as CR LF": lambda text: text.replace("\n", "\r\n"),
    "writes newlines as \\n": lambda text: text.replace("\n", "\\n"),
    "reads the first line only": lambda text: text.split("\n", 1)[0],
    "reads the first paragraph only": lambda text: text.split("\n\n", 1)[0],
    # A text where a list of texts is expected is a list of characters.
    "reads the first character only": lambda text: text[:1],
    "strips accents": without_accents,
    "strips combining characters (NFD)": _uncombined("NFD"),
    "strips combining characters (NFKD)": _uncombined("NFKD"),
    "normalises Unicode to NFC": _normalised("NFC"),
    "normalises Unicode to NFD": _normalised("NFD"),
    "normalises Unicode to NFKC": _normalised("NFKC"),
    "normalises Unicode to NFKD": _normalised("NFKD"),
    "drops what is not ASCII": lambda text: text.encode("ascii", "ignore").decode(),
    "strips accents and drops what is not ASCII": lambda text: (
        unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    ),
    "replaces what is not ASCII by question marks": lambda text: text.encode("ascii", "replace").decode(),
    "replaces what is not ASCII by spaces": lambda text: re.sub(r"[^\x00-\x7f]", " ", text),
    "replaces runs of what is not ASCII by a space": lambda text: re.sub(r"[^\x00-\x7f]+", " ", text),
    "drops emoji": lambda text: EMOJI.sub("", text),
    "drops characters beyond U+FFFF": lambda text: re.sub(r"[\U00010000-\U0010ffff]", "", text),
    "reads UTF-8 as Latin-1": lambda text: text.encode().decode("latin-1"),
    "reads UTF-8 as Windows-1252": lambda text: text.encode().decode("cp1252", "replace"),
    "escapes what is not ASCII": lambda text: text.encode("unicode_escape").decode("ascii"),
    "drops control characters": lambda text: "".join(
        one for one in text if unicodedata.category(one) not in ("Cc", "Cf")
    ),
    "drops zero characters": lambda text: text.replace("\x00", ""),
    "replaces typographic quotes and dashes by plain ones": lambda text: text.translate(TYPEWRITTEN),
    "drops punctuation": _without("P"),
    "drops punctuation and symbols": _without("P", "S"),
    "keeps letters, digits and white space only": lambda text: re.sub(r"[^\w\s]", "", text),
    "drops digits": lambda text: re.sub(r"\d", "", text),
    "reads HTML entities": html.unescape,
    "escapes HTML": html.escape,
    "escapes HTML, but not quotes": lambda text: html.escape(text, quote=False),
    "drops HTML tags": lambda text: re.sub(r"<[^>]*>", "", text),
    "escapes texts as JSON": lambda text: json.dumps(text)[1:-1],
    "escapes texts as JSON, but keeps what is not ASCII": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "writes texts as JSON, quotes included": json.dumps,
    "writes texts as JSON, quotes included, but keeps what is not ASCII": lambda text: json.dumps(
        text, ensure_ascii=False
    ),
    "puts quotes around texts": lambda text: f'"{text}"',
    "reads Python's repr of texts": repr,
    "reads Python's repr of a list of the text": lambda text: repr([text]),
    "reads Python's repr of the text's bytes": lambda text: repr(text.encode()),
    "percent-encodes texts": quote,
    "decodes percent-encoding in texts": unquote,
    "reads ' ' for texts with nothing in them": _filled(" "),
    "reads '.' for texts with nothing in them": _filled("."),
    "reads 'empty' for texts with nothing in them": _filled("empty"),
    "reads 'None' for texts with nothing in them": _filled("None"),
    "puts a space before texts": lambda text: f" {text}",
    "puts a space after texts": lambda text: f"{text} ",
    "puts a newline after texts": lambda text: f"{text}\n",
}
# What clients put before every text when the fields of a document that go there are empty, missing or the same for all:
# of AnythingLLM, LlamaIndex (`key: value` lines), Haystack, and `title + text` in its forms. Prompts are elsewhere.
HEADERS = (
    "<document_metadata>\n</document_metadata>\n\n",
    "<document_metadata>\nsourceDocument: \npublished: \n</document_metadata>\n\n",
    "<document_metadata>\nsourceDocument: undefined\npublished: undefined\n</document_metadata>\n\n",
    *(f"{key}: {value}\n\n" for key in ("title", "source", "file_name") for value in ("", "None")),
    *(f"{missing}{between}" for missing in ("None", "nan", "Untitled") for between in (" ", "\n", ". ")),
    *("undefined ", "null ", "\n", "\n\n", ". ", ": ", "- "),
    *("title: \ntext: ", "Title: \nText: ", "Title: \n", "Title: \n\n"),
    *("text: ", "Text: ", "Content: ", "content: ", "Context: ", "Sentence: ", "Input: ", "document: ", "Title: "),
)


# A header is less of a long text than of a short one: by so much, where it is read and averaged.
LESS = 0.5
SHORTEST, LONGEST = 12, 200


def has_headers(kinds: Sequence[KindDifference]) -> bool:
    """Whether every text is moved, and short ones by more than long ones."""
    plainly = [kind for kind in kinds if kind.kind not in ROLES]
    texts = [text for kind in plainly for text in kind.texts]
    distances = np.concatenate([kind.distances for kind in plainly])
    lengths = np.array([len(text) for text in texts])
    known = np.isfinite(distances)
    short, long = (distances[known & chosen] for chosen in (lengths <= SHORTEST, lengths >= LONGEST))
    if not (len(short) and len(long) and distances[known].min() > HALF):
        return False
    return bool(np.median(long) < LESS * np.median(short))


def has_other_ids(checkpoint: Checkpoint, texts: Mapping[str, Sequence[str]], theirs: Mapping[str, np.ndarray]) -> bool:
    """Whether texts that are the same to the checkpoint's tokenizer have different vectors.

    Args:
        theirs: (n, D) the other's vectors by kind.
    """
    plainly = [kind for kind in texts if kind not in ROLES]
    groups: dict[tuple[int, ...], list[np.ndarray]] = {}
    for kind in plainly:
        for ids, row in zip(checkpoint.tokenize(texts[kind]), theirs[kind], strict=True):
            if ids and np.isfinite(row).all():
                groups.setdefault(tuple(ids), []).append(row)
    return any(
        np.nan_to_num(apart(np.array(rows[:1] * (len(rows) - 1)), np.array(rows[1:]))).max() > HALF
        for rows in groups.values()
        if len(rows) > 1
    )
