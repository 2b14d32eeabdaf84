"""The Unicode script of a token, used by ``embaudit.checkpoint.vocabulary.entries`` and shown with every sticky token.

The code-point tables are those of the ``regex`` package; this file only has the names to ask for.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

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
