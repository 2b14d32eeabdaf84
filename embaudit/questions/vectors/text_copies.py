"""Texts that are stored several times: how many, how they came, and what they do to a search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from embaudit.declared.rule import Finding, Level, Rule
from embaudit.questions.vectors.forms import unit_float32
from embaudit.questions.vectors.profile import Profile, SomeRows

# In the order of the rows: blocks that repeat earlier rows in their order, each text behind its copy, every text
# several times in another order, or some texts here and there.
Arrival = Literal["blocks", "in a row", "all", "scattered"]
# Of the rows that repeat a text, those that must have come in one way to say so.
MOSTLY = 0.8
# 1 − cosine of two rows of one text: beyond, something else than this text was embedded.
SAME_ROW = 0.01
FIRST, QUERIES, ENOUGH = 10, 200, 0.95
# Below, not even this share of the rows repeats a text.
FEW_COPIES = 0.01
# Of the end of a text, behind a header that changes; of two texts, the share that must be the same, and the cosine of
# their vectors: items of a form end alike and say other things.
TAIL, TAIL_SHARE, TAIL_COSINE = 150, 0.75, 0.95
# Characters that the beginning of a chunk and the end of the one before have in common.
LEAST_OVERLAP, MOST_OVERLAP = 20, 2_000
COPIED = Rule(
    "copied_texts",
    "rows that repeat the text of an earlier row, exactly",
    look_if="1 % of the rows or more; `ok` below",
    problem_if="in `search`: of ten results, fewer than half of the different texts that there could be",
    reason="copies take the places of other texts; an application that adds at every start is the usual cause",
)
NEARLY = Rule(
    "nearly_copied_texts",
    "texts that differ in case, white space or a changing header",
    look_if="1 % of the rows or more",
    reason="to a search they are copies, and no exact comparison finds them",
)
BLANK = Rule("blank_texts", look_if="texts of nothing but white space", reason="they can come up for any query")
OVERLAPPING = Rule("overlapping_chunks", reason="`ok`: chunks that begin with the end of the one before are no copies")


@dataclass(frozen=True)
class ResultsWithCopies:
    """What copies do to a search by cosine, asked with stored rows of different texts.

    Attributes:
        queries: how many asked.
        different: texts among the first ten results, on average.
        wanted: ten, or all texts of a store that has fewer.
        enough: results that hold so many different texts for 95 % of the queries.
    """

    queries: int
    different: float
    wanted: int
    enough: int

    @property
    def takes_most(self) -> bool:
        """Whether most places among the first ten that other texts could have are taken by copies."""
        return self.different < self.wanted / 2


@dataclass(frozen=True)
class TextCopies:
    """Texts that several rows have.

    Attributes:
        rows, texts: rows that have a text and a vector, and how many different texts they have.
        repeating: rows whose text an earlier row has.
        arrival: how these came; blocks: in how many.
        repeated: texts that several rows have.
        times: how often each of these is stored, at least and at most.
        has_same_ids: whether copies have the id of the row that they repeat; None if that is not known.
        results: None for codes, and for more rows than a sample holds.
        spelled: rows more that differ from another's text in white space or case alone; headed: in their beginning
            alone. None for more rows than a sample holds.
        blank: rows with a text of nothing but white space; None for more rows than a sample holds.
        overlapping: chunks that begin with the end of the row before; overlap: characters of these, at the median.
    """

    rows: int
    texts: int
    repeating: int
    arrival: Arrival = "scattered"
    blocks: int = 0
    repeated: int = 0
    times: tuple[int, int] = (1, 1)
    has_same_ids: bool | None = None
    results: ResultsWithCopies | None = None
    spelled: int | None = None
    headed: int | None = None
    blank: int | None = None
    overlapping: int = 0
    overlap: int = 0

    def as_json(self) -> dict[str, Any]:
        found = self.results
        return {
            "rows": self.rows,
            "different_texts": self.texts,
            "rows_that_repeat_a_text": self.repeating,
            "arrival": self.arrival if self.repeating else None,
            "blocks": self.blocks,
            "have_the_same_ids": self.has_same_ids,
            "different_texts_of_10_results": None if found is None else found.different,
            "results_for_10_different_texts": None if found is None else found.enough,
            "differ_in_white_space_or_case": self.spelled,
            "differ_in_a_header": self.headed,
            "blank_texts": self.blank,
            "overlapping_chunks": self.overlapping,
        }


def text_copies(profile: Profile) -> TextCopies | None:
    """Copies among the rows of a profile; None for an index without texts."""
    if profile.texts is None:
        return None
    known = np.flatnonzero(profile.usable & (profile.texts != 0))
    before = _earlier(profile.texts[known])
    sample = profile.sample.with_text
    is_whole = len(sample) == len(known)
    ordered = sample.at(np.argsort(sample.numbers)) if is_whole else None
    if ordered is not None and len(ordered):
        before = _of_same_vector(before, ordered.vectors)
    copies = np.flatnonzero(before >= 0)
    rows, texts = len(known), len(known) - len(copies)
    found = TextCopies(rows, texts, len(copies)) if not len(copies) else _arrived(_groups(before), before, copies)
    return found if ordered is None else _looked_into(found, ordered, before, copies)


def _earlier(texts: np.ndarray) -> np.ndarray:
    """(n,) place of the last row before each that has the same text; −1 if there is none."""
    order = np.argsort(texts, kind="stable")
    before = np.full(len(texts), -1, dtype=np.int64)
    same = np.flatnonzero(np.diff(texts[order]) == 0)
    before[order[same + 1]] = order[same]
    return before


def _of_same_vector(before: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """The same without rows whose vector is another one: what was embedded is not this text alone."""
    repeats = np.flatnonzero(before >= 0)
    if vectors.dtype.kind != "f" or not len(repeats):
        return before
    own, other = unit_float32(vectors[repeats]), unit_float32(vectors[before[repeats]])
    left = before.copy()
    left[repeats[np.einsum("nd,nd->n", own, other) < 1 - SAME_ROW]] = -1
    return left


def _arrived(groups: np.ndarray, before: np.ndarray, copies: np.ndarray) -> TextCopies:
    counts = np.bincount(groups)
    often, texts = counts[counts > 1], int((counts > 0).sum())
    is_next = copies - before[copies] == 1
    continues = np.diff(copies, prepend=-2) == 1
    continues[1:] &= np.diff(groups[copies]) == 1
    blocks = int((~continues).sum())
    arrival: Arrival = "scattered"
    if is_next.mean() >= MOSTLY:
        arrival = "in a row"
    elif blocks <= len(copies) / 2:
        arrival = "blocks"
    elif len(often) >= MOSTLY * texts:
        arrival = "all"
    times = int(often.min()), int(often.max())
    return TextCopies(len(groups), texts, len(copies), arrival, blocks, len(often), times)


def _looked_into(found: TextCopies, rows: SomeRows, before: np.ndarray, copies: np.ndarray) -> TextCopies:
    texts = [text or "" for text in rows.texts]
    groups = _groups(before)
    # What an index numbers has no ids of its own.
    are_numbers = [str(one) for one in rows.ids] == [str(number) for number in rows.numbers]
    has_ids = not are_numbers and all(one is not None for one in rows.ids)
    same_ids = [rows.ids[place] == rows.ids[before[place]] for place in copies] if has_ids else []
    plain = [" ".join(text.casefold().split()) for text in texts]
    firsts = [place for place in range(len(texts)) if before[place] < 0]
    spelled = _spelled(texts, plain, firsts)
    overlaps = _overlaps(plain)
    return TextCopies(
        **{
            **vars(found),
            "has_same_ids": bool(np.mean(same_ids) >= MOSTLY) if same_ids else None,
            "results": _results(rows.vectors, groups) if len(copies) else None,
            "spelled": spelled,
            "blank": sum(not text for text in plain),
            "headed": _headed(plain, firsts, rows.vectors),
            "overlapping": len(overlaps),
            "overlap": int(np.median(overlaps)) if overlaps else 0,
        }
    )


def _groups(before: np.ndarray) -> np.ndarray:
    """(n,) place of the first row that each repeats; its own if it repeats none."""
    groups = np.arange(len(before))
    for place in np.flatnonzero(before >= 0):
        groups[place] = groups[before[place]]
    return groups


def _results(vectors: np.ndarray, groups: np.ndarray) -> ResultsWithCopies | None:
    if vectors.dtype.kind != "f":
        return None
    units = unit_float32(vectors)
    firsts = np.unique(groups)
    asked = np.random.default_rng(0).permutation(firsts)[:QUERIES]
    wanted = min(FIRST, len(firsts))
    different, enough = [], []
    for cosines in units[asked] @ units.T:
        # Copies lie together, whatever rounding makes of their ties.
        order = np.argsort(-np.round(cosines, 6), kind="stable")
        _, first = np.unique(groups[order], return_index=True)
        different.append((first < FIRST).sum())
        enough.append(np.sort(first)[wanted - 1] + 1)
    return ResultsWithCopies(
        len(asked), float(np.mean(different)), wanted, int(np.ceil(np.quantile(enough, ENOUGH, method="higher")))
    )


def _spelled(texts: list[str], plain: list[str], firsts: list[int]) -> int:
    """Texts more than there would be if white space and case were no difference."""
    return len({texts[place] for place in firsts}) - len({plain[place] for place in firsts})


def _headed(plain: list[str], firsts: list[int], vectors: np.ndarray) -> int:
    """Rows whose text is another's but for its beginning."""
    units = unit_float32(vectors) if vectors.dtype.kind == "f" else None
    by_end: dict[str, list[int]] = {}
    found = 0
    for place in firsts:
        text = plain[place]
        if len(text) <= TAIL:
            continue
        others = by_end.setdefault(text[-TAIL:], [])
        same = (
            other
            for other in others
            if text != plain[other]
            and _common_end(text, plain[other]) >= TAIL_SHARE * max(len(text), len(plain[other]))
            and (units is None or float(units[place] @ units[other]) >= TAIL_COSINE)
        )
        if next(same, None) is not None:
            found += 1
        elif all(plain[other] != text for other in others):
            others.append(place)
    return found


def _common_end(one: str, other: str) -> int:
    most = min(len(one), len(other))
    differs = (place for place in range(TAIL, most) if one[-place - 1] != other[-place - 1])
    return next(differs, most)


def _overlaps(plain: list[str]) -> list[int]:
    """Characters that chunks begin with and the row before ends with."""
    found = []
    for before, text in pairwise(plain):
        if before == text or len(text) < LEAST_OVERLAP:
            continue
        end, start = before[-MOST_OVERLAP:], text[:LEAST_OVERLAP]
        place = end.find(start, 1)
        while place >= 0 and not text.startswith(end[place:]):
            place = end.find(start, place + 1)
        if place >= 0:
            found.append(len(end) - place)
    return found


def copy_findings(copies: TextCopies | None, level: Level = "look") -> Iterator[Finding]:
    """What to know of copies.

    Args:
        level: of a search of which most places among the first ten hold copies.
    """
    if copies is None:
        return
    if copies.repeating >= max(1, FEW_COPIES * copies.rows):
        yield _copied(copies, level)
    elif copies.repeating:
        verb = "repeats" if copies.repeating == 1 else "repeat"
        yield COPIED.finding(
            "ok",
            f"{copies.repeating:,} of {copies.rows:,} rows {verb} the text of an earlier row: too few for a search to "
            "show it.",
            value=float(copies.repeating),
        )
    for count, what in ((copies.spelled, "white space or case alone"), (copies.headed, "a header before it alone")):
        if count and count >= FEW_COPIES * copies.rows:
            are = "row differs" if count == 1 else "rows differ"
            yield NEARLY.finding(
                "look",
                f"{count:,} {are} from the text of another row in {what}.",
                "To a search they are copies: they take each other's places among the first results.",
                "Bring texts to one form before they are added, and keep what changes in the metadata.",
                float(count),
            )
    if copies.blank:
        have = "has" if copies.blank == 1 else "have"
        yield BLANK.finding(
            "look",
            f"{copies.blank:,} of {copies.rows:,} rows {have} a text of nothing but white space.",
            "Their vectors say nothing and can come up for any query: pages without text, or chunks that were cut so.",
            "Leave empty texts out before rows are added, and delete these.",
            float(copies.blank),
        )
    if copies.overlapping:
        yield OVERLAPPING.finding(
            "ok",
            f"{copies.overlapping:,} of {copies.rows:,} rows begin with the end of the row before them, "
            f"{copies.overlap:,} characters at the median: chunks that overlap, and no copies.",
            value=float(copies.overlapping),
        )


def _copied(copies: TextCopies, level: Level) -> Finding:
    least, most = copies.times
    verb = "repeats" if copies.repeating == 1 else "repeat"
    texts = "there is one text" if copies.texts == 1 else f"there are {copies.texts:,} different texts"
    some = ", each" if copies.repeated == copies.texts else f", {copies.repeated:,} of them"
    each = f"{some} stored {f'{least:,} to ' if least < most else ''}{most:,} times"
    blocks = "a block that repeats" if copies.blocks == 1 else f"{copies.blocks:,} blocks that repeat"
    how = {
        "blocks": f", put in again in {blocks} earlier rows in their order",
        "in a row": ", each copy behind its row",
        "all": ", put in again",
        "scattered": ", here and there",
    }[copies.arrival]
    if copies.has_same_ids is not None and copies.arrival != "scattered":
        how += (
            f"{' and' if copies.arrival == 'in a row' else ''} under {'the same' if copies.has_same_ids else 'new'} ids"
        )
    found, search = copies.results, ""
    if found is not None:
        search = f" Of ten results, {found.different:.1f} are different texts on average"
        if found.enough > FIRST:
            all_of = "ten different texts" if found.wanted == FIRST else f"all {found.wanted:,} texts"
            search += f"; it takes {found.enough:,} results to have {all_of}"
        search += "."
    # Where few texts are repeated, the rest was added once.
    is_anew = copies.repeated >= copies.texts / 2
    cause = {
        "blocks": "An application that adds its texts anew at each start does so."
        if is_anew
        else "A file or a page that was added several times does so.",
        "all": "An application that adds its texts anew at each start does so.",
        "in a row": "A loop that adds each text several times does so."
        if is_anew
        else "A splitter or a source that gives some texts several times does so.",
        "scattered": "A heading or form on many pages does so, or a file under two names.",
    }[copies.arrival]
    mend = (
        "Remove duplicates before texts are added."
        if copies.arrival == "scattered" or not is_anew
        else "Give each text an id of its own, such as its hash, add it by upsert, and delete the copies."
    )
    return COPIED.finding(
        level if found is not None and found.takes_most else "look",
        f"{copies.repeating:,} of {copies.rows:,} rows {verb} the text of an earlier row{how}: {texts}{each}.{search}",
        f"Copies take the places of other texts among the first results. {cause}",
        mend,
        float(copies.repeating),
    )
