"""The changes: each turns a text into the same text written otherwise, or leaves it as it is.

None changes the words a reader sees, but for typos, of which each text gets one, and for spelling. They are the same
for a text whenever and wherever they are made: where one is drawn, the draw depends only on the seed and the text.

British words with their American spelling. Left out: pairs of which one side is also another word (check, tire).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from embaudit.corpora.draw import rank

PAIRS = """
aeroplane airplane
aeroplanes airplanes
aluminium aluminum
anaemia anemia
anaesthetic anesthetic
analyse analyze
analysed analyzed
analysing analyzing
armour armor
behaviour behavior
behavioural behavioral
cancelled canceled
cancelling canceling
catalogue catalog
catalogues catalogs
centimetre centimeter
centimetres centimeters
centre center
centres centers
colour color
coloured colored
colours colors
cosy cozy
criticise criticize
defence defense
diarrhoea diarrhea
dialogue dialog
doughnut donut
endeavour endeavor
enrol enroll
equalise equalize
favour favor
favourite favorite
favourites favorites
fibre fiber
fibres fibers
flavour flavor
flavours flavors
fulfil fulfill
glamour glamor
grey gray
gynaecologist gynecologist
haemoglobin hemoglobin
harbour harbor
harbours harbors
honour honor
honours honors
humour humor
instalment installment
jewellery jewelry
kilometre kilometer
kilometres kilometers
labelled labeled
labour labor
licence license
litre liter
litres liters
manoeuvre maneuver
marvellous marvelous
minimise minimize
mould mold
mouldy moldy
moustache mustache
neighbour neighbor
neighbours neighbors
neighbourhood neighborhood
odour odor
oestrogen estrogen
offence offense
optimise optimize
organisation organization
organisations organizations
organise organize
organised organized
paediatric pediatric
parlour parlor
plough plow
pyjamas pajamas
realise realize
recognise recognize
rigour rigor
rumour rumor
savour savor
sceptical skeptical
skilful skillful
specialise specialize
sulphur sulfur
summarise summarize
symbolise symbolize
theatre theater
theatres theaters
traveller traveler
travellers travelers
travelled traveled
travelling traveling
tumour tumor
vapour vapor
vigour vigor
woollen woolen
yoghurt yogurt
"""
_BOTH = [tuple(line.split()) for line in PAIRS.split("\n") if line]
# In either direction; lower case.
OTHER_SPELLINGS = {one: other for pair in _BOTH for one, other in (pair, pair[::-1])}


# Of a change's text and the text that decides what is drawn.
Write = Callable[[str, int], str]
CASE, TYPOS, PUNCTUATION, UNICODE, SPACES, SPELLING = "case", "typos", "punctuation", "unicode", "spaces", "spelling"
# Shorter words are mostly function words, whose loss changes little.
TYPED_LETTERS = 4
# The rows of a keyboard; a key's neighbours are those beside it in its row, and the two nearest in the next rows.
KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
HOMOGLYPHS = str.maketrans("aceiopsxyABCEHIKMOPSTX", "асеіорѕхуАВСЕНІКМОРЅТХ")
FIRST_WIDE, WIDE_BY = 0x21, 0xFEE0
ZERO_WIDTH = "\u200b"
WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True)
class SurfaceChange:
    """One way to write a text otherwise.

    Attributes:
        write: of a text and a seed; returns the text itself where it has nothing to change.
    """

    name: str
    kind: str
    write: Write


def neighbouring_keys() -> dict[str, str]:
    """Each letter's neighbours on a keyboard, by row and then from left to right."""
    places = {letter: (row, column) for row, keys in enumerate(KEYS) for column, letter in enumerate(keys)}
    return {
        letter: "".join(
            other
            for other, (row, column) in places.items()
            # Each row is half a key further right than the one above it.
            if (row == own[0] and abs(column - own[1]) == 1)
            or (row == own[0] + 1 and column in (own[1] - 1, own[1]))
            or (row == own[0] - 1 and column in (own[1], own[1] + 1))
        )
        for letter, own in places.items()
    }


NEIGHBOURS = neighbouring_keys()


def _titled(text: str, seed: int) -> str:
    return re.sub(r"\S+", lambda word: word[0][:1].upper() + word[0][1:], text)


def _drawn_word(text: str, seed: int, change: str, can_have: Callable[[str], list[int]]) -> tuple[int, int]:
    """Where the letter stands that a typo hits, and what decides how; −1 if no word of the text can have it."""
    drawn = int(rank(f"{change}\n{text}", seed), 16)
    words = [(word.start(), found) for word in WORD.finditer(text) if (found := can_have(word[0]))]
    if not words:
        return -1, 0
    # Different digits of the draw, so that word, letter and key do not depend on each other.
    start, places = words[drawn % len(words)]
    return start + places[(drawn >> 20) % len(places)], drawn >> 40


def _inside(word: str) -> list[int]:
    """The letters that are neither first nor last: those are rarely mistyped, and weigh more in reading."""
    return list(range(1, len(word) - 1)) if len(word) >= TYPED_LETTERS else []


def _hit_neighbour(text: str, seed: int) -> str:
    place, drawn = _drawn_word(
        text, seed, "neighbour", lambda word: [at for at in _inside(word) if word[at].lower() in NEIGHBOURS]
    )
    if place < 0:
        return text
    near = NEIGHBOURS[text[place].lower()]
    key = near[drawn % len(near)]
    return text[:place] + (key.upper() if text[place].isupper() else key) + text[place + 1 :]


def _swapped(text: str, seed: int) -> str:
    place, _ = _drawn_word(
        text, seed, "swap", lambda word: [at for at in _inside(word)[:-1] if word[at].lower() != word[at + 1].lower()]
    )
    return text if place < 0 else text[:place] + text[place + 1] + text[place] + text[place + 2 :]


def _left_out(text: str, seed: int) -> str:
    place, _ = _drawn_word(text, seed, "left out", _inside)
    return text if place < 0 else text[:place] + text[place + 1 :]


def _without_punctuation(text: str, seed: int) -> str:
    """Apostrophes are dropped, other marks become spaces; marks between digits stay, since 4.2 is not 42."""
    kept = [
        character
        if not unicodedata.category(character).startswith("P")
        or (text[place - 1 : place].isdigit() and text[place + 1 : place + 2].isdigit())
        else ("" if character in "'’" else " ")
        for place, character in enumerate(text)
    ]
    return " ".join("".join(kept).split()) if any(one != own for one, own in zip(kept, text, strict=True)) else text


def _asked(text: str, seed: int) -> str:
    return f"{text}?" if text[-1:].isalnum() else text


def _other_normal_form(text: str, seed: int) -> str:
    """NFD, in which an accent follows its letter, as file names of macOS have it; NFC if the text is in NFD."""
    split = unicodedata.normalize("NFD", text)
    return split if split != text else unicodedata.normalize("NFC", text)


def _wide(text: str, seed: int) -> str:
    """ASCII as East Asian input methods write it; NFKC turns it back. Spaces stay."""
    return "".join(chr(ord(one) + WIDE_BY) if FIRST_WIDE <= ord(one) < 0x7F else one for one in text)


def _with_zero_width(text: str, seed: int) -> str:
    """A zero-width space in the middle of each longer word, as pages have them for breaking lines."""
    return WORD.sub(lambda word: _halved(word[0]) if len(word[0]) >= TYPED_LETTERS else word[0], text)


def _halved(word: str) -> str:
    return word[: len(word) // 2] + ZERO_WIDTH + word[len(word) // 2 :]


def _other_spelling(text: str, seed: int) -> str:
    def other(word: re.Match[str]) -> str:
        own = word[0]
        found = OTHER_SPELLINGS.get(own.lower())
        if found is None:
            return own
        return found.upper() if own.isupper() else found.capitalize() if own[0].isupper() else found

    return WORD.sub(other, text)


CHANGES = (
    SurfaceChange("lower case", CASE, lambda text, seed: text.lower()),
    SurfaceChange("upper case", CASE, lambda text, seed: text.upper()),
    SurfaceChange("title case", CASE, _titled),
    SurfaceChange("neighbouring key", TYPOS, _hit_neighbour),
    SurfaceChange("swapped letters", TYPOS, _swapped),
    SurfaceChange("letter left out", TYPOS, _left_out),
    SurfaceChange("no punctuation", PUNCTUATION, _without_punctuation),
    SurfaceChange("question mark", PUNCTUATION, _asked),
    SurfaceChange("other normal form", UNICODE, _other_normal_form),
    SurfaceChange("full width", UNICODE, _wide),
    SurfaceChange("homoglyphs", UNICODE, lambda text, seed: text.translate(HOMOGLYPHS)),
    SurfaceChange("zero-width spaces", SPACES, _with_zero_width),
    SurfaceChange("doubled spaces", SPACES, lambda text, seed: text.replace(" ", "  ")),
    SurfaceChange("British or American", SPELLING, _other_spelling),
)
# What people write by mistake or by habit, and do not see as another form of the same text.
MISTAKES = (TYPOS, SPELLING)
