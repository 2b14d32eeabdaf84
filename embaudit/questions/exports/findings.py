"""What follows from a file that was held against the weights."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

import numpy as np

from embaudit.declared.rule import Finding, Rule
from embaudit.declared.rule import number as decimals
from embaudit.questions.exports.held import ExportComparison
from embaudit.questions.exports.quantised import BITS
from embaudit.questions.parity.compare import (
    HALF,
    SAME,
    SAME_LENGTH,
    KindDifference,
    farthest,
    is_apart,
    is_rounding,
    number,
)
from embaudit.words.sentences import quoted

# Times what the checkpoint's own matrices move its vectors by when they are rounded so: of the median, and of a kind of
# one or two texts, for which it is chance.
FACTOR, FACTOR_OF_A_KIND = 3.0, 10.0
# Another pooling explains a difference if it leaves less than this share of it.
EXPLAINED = 0.5
# Lengths of vectors of a quantised file vary by themselves.
LENGTH_IF_QUANTISED = 0.1
# A search shows another text in every ten from here on.
NEIGHBOURS = 0.9
SAME_FUNCTION = Rule(
    "export_same",
    reason=f"`ok`: 1 − cosine up to {decimals(SAME)}, in half precision up to {decimals(HALF)}, for texts of every "
    "kind, alone and in batches of eight",
)
ROUNDED = Rule(
    "export_rounded",
    look_if=f"fewer than {decimals(10 * NEIGHBOURS)} of a sentence's ten nearest are the same",
    reason="`ok`: as far off as its precision rounds. One of ten results is then another",
)
ANOTHER = Rule(
    "export_is_another",
    problem_if="most tensors of the same name are another revision's; another pooling leaves less than "
    f"{decimals(EXPLAINED)} of the difference; another length of vectors; a length at which texts end, or texts "
    f"without a vector; otherwise 1 − cosine above {decimals(SAME)} in float32, {decimals(HALF)} in half precision, or "
    f"{decimals(FACTOR)} times (of one kind, {decimals(FACTOR_OF_A_KIND)} times) what rounding the checkpoint's own "
    "matrices does",
    reason="onnxruntime's files of all-MiniLM-L6-v2 are .75 to .93 times as far off as that, whatever their bits and "
    "scales; one or two texts of a kind, .5 to 1.3 times, and up to 5 times for a tiny model with random weights",
)
BATCHED = Rule(
    "export_batches",
    look_if="it fails on a batch",
    problem_if="another vector in a batch than alone, by the same bounds",
    reason="padding is read. Files of 8 bits share a scale among the texts of a batch, so theirs differ by about as "
    "much as they are rounded",
)


def findings_of(held: Sequence[ExportComparison], reference: str) -> Iterator[Finding]:
    """One finding for all files that are the weights, and one for each other.

    Args:
        reference: the checkpoint's, for commands.
    """
    same = [one for one in held if one.is_same and not _failed(one) and _in_batches(one) is None]
    if same:
        worst = max(one.worst for one in same)
        yield SAME_FUNCTION.finding(
            "ok",
            f"{_listed([one.name for one in same])} {'gives' if len(same) == 1 else 'give'} the vectors of the "
            f"weights (1 − cosine at most {worst:.1e}).",
            value=worst,
        )
    for one in held:
        if one not in same:
            yield _another(one, reference) or _in_batches(one) or _rounded(one)


def _another(held: ExportComparison, reference: str) -> Finding | None:
    """The problem that a file is another function; None if it is the weights, rounded or not."""
    because = list(_causes(held))
    is_far = _is_far(held)
    if not because and not is_far:
        return None
    if not because and held.weights.are_the_same:
        because = ["Its weights are the checkpoint's: it computes something else of them"]
    apart = [kind for kind in held.kinds if is_apart(kind)]
    most = max((kind for kind in apart if farthest(kind) > SAME), key=farthest, default=None)
    first = f"{_described(held)} is another function than the weights"
    if held.dimensions[0] != held.dimensions[1] and held.dimensions[1]:
        first += f": its vectors have {held.dimensions[1]} dimensions, the checkpoint's {held.dimensions[0]}"
    elif most is not None:
        first += (
            f" (1 − cosine up to {most.worst:.2g}, for {quoted(most.worst_text)}; {number(held.median)} in the median)"
        )
    elif apart:
        first += ": its vectors point the same way and have another length"
    command = _command(held, reference)
    return ANOTHER.finding(
        "problem",
        ". ".join([first, *because]) + ".",
        "Servers that read this file serve another model than the one that was checked, and its vectors do not match "
        "those of the weights.",
        f"Export it again from these weights, or remove it. What it does otherwise: {command}",
        most.worst if most is not None and held.dimensions[0] == held.dimensions[1] else None,
    )


def _causes(held: ExportComparison) -> Iterator[str]:
    """What makes it another function whatever its precision, as sentences without their full stops."""
    beside, told = held.weights, held.explanation
    if beside.are_others:
        yield (
            f"Its weights are of another revision: {beside.differing} of {beside.compared} tensors of the same name "
            f"differ (‖Δ‖/‖W‖ up to {beside.largest:.2g})"
        )
    elif told is not None and told.differs and held.explained < EXPLAINED * held.median:
        yield f"It {'; it '.join(told.differs)}"
    if _has_another_length(held):
        length = told.length if told is not None else ""
        is_rough = not length or length.startswith("gives")
        yield "Its vectors have other lengths: a Normalize was lost or added" if is_rough else f"It {length}"
    failed = _failed(held)
    if failed and held.length is not None:
        yield f"It takes texts of at most {held.length} tokens, and the checkpoint reads longer ones"
    elif failed:
        kind, place, reason = failed[0]
        yield f"{len(failed)} texts get no vector, {quoted(kind.texts[place])} first: {reason.rstrip('.')}"


def _is_far(held: ExportComparison) -> bool:
    """Whether vectors differ by more than the file's precision makes them."""
    if held.dimensions[0] != held.dimensions[1]:
        return True
    if held.precision in BITS:
        noise = np.array(held.noise or (np.nan,) * len(held.kinds))
        usual = float(np.nanmax([np.nanmedian(noise), SAME]))
        of_kinds = zip(held.kinds, np.fmax(noise, usual), strict=True)
        return held.median > FACTOR * usual or any(kind.median > FACTOR_OF_A_KIND * most for kind, most in of_kinds)
    if held.precision == "float32":
        return any(map(is_apart, held.kinds)) and not is_rounding(held.kinds)
    return held.worst > HALF


def _has_another_length(held: ExportComparison) -> bool:
    ratios = np.concatenate([kind.ratios for kind in held.kinds])
    ratios = ratios[np.isfinite(ratios)]
    if not len(ratios):
        return False
    if held.precision in BITS:
        return bool(abs(np.median(ratios) - 1) > LENGTH_IF_QUANTISED)
    return bool(np.abs(ratios - 1).max() > (SAME_LENGTH if held.precision == "float32" else HALF))


def _failed(held: ExportComparison) -> list[tuple[KindDifference, int, str]]:
    """Texts without a vector to which the checkpoint gives one, and why."""
    return [
        (kind, place, kind.failures.get(place, "it is NaN or zeros"))
        for kind in held.kinds
        for place in np.flatnonzero(np.isnan(kind.distances) & kind.is_known).tolist()
        if held.dimensions[0] == held.dimensions[1]
    ]


def _in_batches(held: ExportComparison) -> Finding | None:
    """Whether a text has another vector beside others; of a quantised file this is said with the rest."""
    found = held.batched
    if found.failures:
        place, reason = next(iter(found.failures.items()))
        return BATCHED.finding(
            "look",
            f"{_described(held)} fails on batches of texts of different lengths, {quoted(found.texts[place])} among "
            f"them: {reason.rstrip('.')}.",
            "Servers put texts that come together into batches.",
            "Export it with a batch and a length of any size.",
        )
    limit = SAME if held.precision == "float32" else HALF
    if held.precision in BITS:
        limit = FACTOR * max(float(np.nanmedian(held.noise or (0.0,))), SAME)
    far = found.median if held.precision in BITS else found.worst
    if not far > limit:
        return None
    return BATCHED.finding(
        "problem",
        f"{_described(held)} gives a text another vector in a batch than alone (1 − cosine up to {found.worst:.2g}, on "
        f"{quoted(found.worst_text)}).",
        "What is stored then depends on which texts come together.",
        "Export it again with its attention mask: padding is read.",
        found.worst,
    )


def _rounded(held: ExportComparison) -> Finding:
    """How much is lost by a lower precision."""
    rounds = "half precision" if held.precision == "float32" else "its precision"
    sentence = (
        f"{_described(held)} differs from the weights as {rounds} rounds: 1 − cosine {number(held.median)} in the "
        f"median, at most {number(held.worst)}"
    )
    if held.overlap is not None:
        sentence += f"; of a sentence's ten nearest, {10 * held.overlap:.1f} are the same"
    if held.precision in BITS and held.batched.median > SAME:
        sentence += f"; the same text in a batch differs by {number(held.batched.median)}"
    is_much = held.overlap is not None and held.overlap < NEIGHBOURS
    return ROUNDED.finding(
        "look" if is_much else "ok",
        f"{sentence}.",
        "Its vectors do not match those of the weights: a search shows another text in every ten.",
        "Encode documents and queries with the same file.",
        held.median,
    )


def _described(held: ExportComparison) -> str:
    """The file, with its precision and what wrote it."""
    more = [held.precision, *([held.producer] if held.producer else ())]
    more += [f"{held.batch} text{'s' if held.batch > 1 else ''} at a time"] if held.batch else []
    return f"{held.name} ({', '.join(more)})"


def _command(held: ExportComparison, reference: str) -> str:
    name = held.name.partition(" (")[0]
    where = f"{reference.rstrip('/')}/{name}"
    return f"embaudit parity {shlex.quote(reference)} --with {shlex.quote(where)} --with-backend onnx"


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
