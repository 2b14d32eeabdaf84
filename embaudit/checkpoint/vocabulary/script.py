"""The Unicode script of a token, used by ``embaudit.checkpoint.vocabulary`` and shown with every sticky token.

The code-point tables are those of the ``regex`` package; this file only has the names to ask for.

The kind of a vocabulary entry: word, subword, byte, digits, punctuation, or reserved row.

Used by ``embaudit.checkpoint.vocabulary`` and shown with every sticky token, since sticky tokens are rarely
ordinary words. Everything here is derived from the token string as written in the vocabulary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import regex

COMMON = "Common"
INHERITED = "Inherited"
UNKNOWN = "Unknown"

# Every value of the Script property up to Unicode 18, tried in this order, the most frequent in vocabularies first.
# Names unknown to the installed regex are skipped; the tests cover all code points.
_NAMES = """
Latin Common Han Cyrillic Arabic Greek Hangul Hiragana Katakana Devanagari Hebrew Thai Bengali Tamil
Telugu Armenian Georgian Kannada Malayalam Gujarati Gurmukhi Sinhala Khmer Lao Myanmar Ethiopic Tibetan
Mongolian Inherited Oriya Bopomofo Syriac Thaana Cherokee Canadian_Aboriginal Braille Ogham Runic Adlam
Ahom Anatolian_Hieroglyphs Avestan Balinese Bamum Bassa_Vah Batak Beria_Erfe Bhaiksuki Brahmi Buginese
Buhid Carian Caucasian_Albanian Chakma Cham Chorasmian Coptic Cuneiform Cypriot Cypro_Minoan Deseret
Dives_Akuru Dogra Duployan Egyptian_Hieroglyphs Elbasan Elymaic Garay Glagolitic Gothic Grantha
Gunjala_Gondi Gurung_Khema Hanifi_Rohingya Hanunoo Hatran Imperial_Aramaic Inscriptional_Pahlavi
Inscriptional_Parthian Javanese Kaithi Kawi Kayah_Li Kharoshthi Khitan_Small_Script Khojki Khudawadi
Kirat_Rai Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian Mahajani Makasar Mandaic Manichaean Marchen
Masaram_Gondi Medefaidrin Meetei_Mayek Mende_Kikakui Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mro
Multani Nabataean Nag_Mundari Nandinagari New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong Ol_Chiki
Ol_Onal Old_Hungarian Old_Italic Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian
Old_Turkic Old_Uyghur Osage Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi
Rejang Samaritan Saurashtra Sharada Shavian Siddham Sidetic SignWriting Sogdian Sora_Sompeng Soyombo
Sundanese Sunuwar Syloti_Nagri Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Tai_Yo Takri Tangsa Tangut
Tifinagh Tirhuta Todhri Tolong_Siki Toto Tulu_Tigalari Ugaritic Vai Vithkuqi Wancho Warang_Citi Yezidi Yi
Zanabazar_Square Jurchen Proto_Cuneiform Seal
"""
SCRIPTS = tuple(_NAMES.split())


@cache
def _patterns() -> tuple[tuple[str, regex.Pattern[str]], ...]:
    found = []
    for name in SCRIPTS:
        try:
            found.append((name, regex.compile(rf"\p{{Script={name}}}")))
        except regex.error:  # a script newer than the installed tables
            continue
    return tuple(found)


@cache
def script_of_character(character: str) -> str:
    """The Script property of one character; ``Unknown`` for unassigned, private and surrogate code points."""
    for name, pattern in _patterns():
        if pattern.match(character):
            return name
    return UNKNOWN


def script_of(text: str) -> str:
    """The script of most of a text's characters.

    Digits, punctuation and symbols belong to every script: the result is ``Common`` only if there is nothing else;
    likewise ``Inherited`` for combining marks. If two scripts tie, the first in the text wins. ``Unknown`` for an empty
    text and for unassigned characters.
    """
    counts = Counter(script_of_character(character) for character in text)
    if not counts:
        return UNKNOWN
    own = {name: count for name, count in counts.items() if name not in (COMMON, INHERITED, UNKNOWN)}
    if own:
        return max(own, key=own.__getitem__)
    return next(name for name in (UNKNOWN, COMMON, INHERITED) if name in counts)


Origin = Literal["special", "unused", "byte", "word", "subword", "punctuation", "digits"]

SENTENCEPIECE_SPACE = "▁"
BYTE_LEVEL_SPACE = "Ġ"

_BYTE_FALLBACK = regex.compile(r"<0x([0-9A-Fa-f]{2})>")
# A bracketed marker with letters: [unused7], <extra_id_3>, <|endoftext|>.
_MARKER = regex.compile(r"\s*(?:\[[^\s\[\]]*\p{L}[^\s\[\]]*\]|<[^\s<>]*\p{L}[^\s<>]*>)\s*")
# Names of reserved rows in the vocabularies of BERT, T5, Llama 3, Gemma and fairseq.
_RESERVED = regex.compile(r"(?i)\s*(?:[\[<]\|?_?(?:unused|reserved|extra_id|extra_token)\S*[\]>]|madeupword\d+)\s*")
_BLANK_OR_CONTROL = regex.compile(r"[\s\p{Cc}\p{Cf}\p{Z}]*")
_LETTER = regex.compile(r"\p{L}|(?![\p{Script=Inherited}\p{Script=Common}])\p{M}")
_NUMBER = regex.compile(r"\p{N}")


@dataclass(frozen=True)
class WordMarks:
    """How a vocabulary marks word boundaries; unused marks are empty.

    Attributes:
        continuation: prefix of a piece that continues a word (WordPiece ``##``).
        start: prefix of a piece that follows a space (``▁`` SentencePiece, ``Ġ`` byte-level BPE).
        end: suffix of a piece that ends a word (``</w>``, CLIP).
        is_byte_level: token strings spell bytes in GPT-2's alphabet of 256 printable characters.
    """

    continuation: str = ""
    start: str = ""
    end: str = ""
    is_byte_level: bool = False

    @property
    def is_sentencepiece(self) -> bool:
        return self.start == SENTENCEPIECE_SPACE

    def begins_word(self, token: str) -> bool:
        """Whether the token's marks allow it to be a whole word (for CLIP: whether it ends one)."""
        if self.start:
            return token.startswith(self.start)
        if self.end:
            return token.endswith(self.end)
        return not self.continues_word(token)

    def continues_word(self, token: str) -> bool:
        return bool(self.continuation) and token.startswith(self.continuation) and token != self.continuation

    def bare(self, token: str) -> str:
        """The token without its marks."""
        if self.continues_word(token):
            token = token.removeprefix(self.continuation)
        if self.start:
            token = token.removeprefix(self.start)
        return token.removesuffix(self.end) if self.end else token


def read_marks(
    two_words: Sequence[str], accented: Sequence[str], continuation: str | None = None, end: str | None = None
) -> WordMarks:
    """The marks of a vocabulary, inferred from how its tokenizer encodes two short texts.

    Counting marked entries would not do: a Chinese SentencePiece vocabulary has hardly any entry with ``▁``.

    Args:
        two_words: token strings of ``"a a"``.
        accented: token strings of ``"é"``; a byte-level vocabulary writes it as ``Ã©``.
        continuation, end: the prefix and suffix that the tokenizer declares, if any.
    """
    starts = (SENTENCEPIECE_SPACE, BYTE_LEVEL_SPACE)
    start = next((mark for mark in starts if any(token.startswith(mark) for token in two_words)), "")
    if not end:
        end = "</w>" if any(token.endswith("</w>") for token in two_words) else ""
    is_byte_level = start == BYTE_LEVEL_SPACE or any(token.startswith("Ã") for token in accented)
    return WordMarks(continuation or "", start, end, is_byte_level)


@cache
def _byte_of_character() -> dict[str, int]:
    """GPT-2's byte alphabet: printable Latin-1 represents itself, the other 68 bytes are U+0100 and up."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (byte for byte in range(256) if byte not in printable)
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


def token_bytes(token: str, marks: WordMarks) -> bytes | None:
    """The bytes that a byte-fallback (``<0x0A>``) or byte-level token represents; None for all others."""
    fallback = _BYTE_FALLBACK.fullmatch(token)
    if fallback:
        return bytes([int(fallback[1], 16)])
    if not marks.is_byte_level:
        return None
    alphabet = _byte_of_character()
    spelled = token.removesuffix(marks.end) if marks.end else token
    if any(character not in alphabet for character in spelled):
        return None  # an added token, written as text
    return bytes(alphabet[character] for character in spelled)


def is_marker(text: str) -> bool:
    """Whether a text is a bracketed marker with letters, such as ``[unused7]`` or ``<extra_id_3>``."""
    return _MARKER.fullmatch(text) is not None


def origin_of(
    token: str | None, text: str, marks: WordMarks, *, is_special: bool = False, is_dead_marker: bool = False
) -> Origin:
    """The origin of one vocabulary entry; the first that applies.

    - ``special``: one of the tokenizer's special tokens.
    - ``unused``: an id without a token string (a padding row of the matrix), or a reserved row: ``[unused7]``,
      ``<reserved_3>``, ``madeupword0001``, any bracketed marker that does not survive the round trip.
    - ``byte``: byte fallback (``<0x0A>``), incomplete UTF-8, and entries of only whitespace and control characters
      (including a lone ``▁`` or ``Ċ``).
    - ``word``: has letters, and marks that allow it to be a word: no ``##``, a leading ``▁`` or ``Ġ``, a trailing
      ``</w>``. In scripts without spaces, most words have no ``▁`` and count as ``subword``.
    - ``subword``: has letters, and continues a word.
    - ``digits``: no letters, at least one number character.
    - ``punctuation``: the rest: punctuation, symbols, emoji, private use.
    """
    if is_special:
        return "special"
    if token is None or is_dead_marker or _RESERVED.fullmatch(token):
        return "unused"
    raw = token_bytes(token, marks)
    if _BYTE_FALLBACK.fullmatch(token) or (raw is not None and not _is_utf8(raw)):
        return "byte"
    surface = marks.bare(text) if raw is None else raw.decode()
    if _BLANK_OR_CONTROL.fullmatch(surface):
        return "byte"
    if _LETTER.search(surface):
        return "word" if marks.begins_word(token) else "subword"
    return "digits" if _NUMBER.search(surface) else "punctuation"


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
