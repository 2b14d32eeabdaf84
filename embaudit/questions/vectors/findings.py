"""What follows from an index's figures, in words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from embaudit.declared.finding import Finding, interval
from embaudit.questions.parity.compare import HALF
from embaudit.questions.vectors.against import SampleComparison, is_other_length
from embaudit.questions.vectors.alone import VectorProfile
from embaudit.questions.vectors.neighbours import COPY, FEWEST_ROWS
from embaudit.questions.vectors.sample import EXACT, LOOK_FIRST, label
from embaudit.questions.vectors.text_copies import copy_findings
from embaudit.stores.store import Store
from embaudit.words.shown import quoted

# A vector of so many different texts, and of so large a share of rows, is no matter of texts that are read alike.
GROUP, GROUP_SHARE = 5, 1e-3
# All pairs at this mean cosine are nearly one vector; well-known models reach 0.85.
COLLAPSED, CROWDED = 0.95, 0.8
FEW_DIRECTIONS = 5.0
# Different texts, or rows, that could lie in four times as many directions.
FEWEST_DIFFERENT = 20
HUB = 0.1
COPIES = 0.05
OUTLIERS = 0.01
# all-MiniLM-L6-v2 gives zero, but for 1e-33, in 3 of 384 dimensions: in an export with fewer digits they are zeros.
FEW_CONSTANT = 0.01
# Vectors with so many zeros count words.
SPARSE = 0.5


def findings_alone(index: Store, alone: VectorProfile) -> Iterator[Finding]:
    """Problems of the vectors themselves, and what else to know."""
    profile = alone.profile
    yield from _dimensions(alone)
    for rows, what, name in (
        (profile.not_finite, "NaN or infinity", "not_finite"),
        (profile.zeros, "zeros only", "zeros"),
    ):
        if len(rows):
            yield Finding(
                "problem",
                f"{len(rows):,} of {profile.rows:,} vectors hold {what}{_of_all(index, rows)}, row "
                f"{int(rows[0]) + 1:,} first.",
                "No search finds them, and some indexes refuse them.",
                "Encode these rows again.",
                name,
                float(len(rows)),
            )
    yield from _equal(index, alone)
    yield from copy_findings(alone.copies)
    yield from _crowded(alone)
    if _are_constant(alone):
        yield Finding(
            "look",
            f"{len(profile.constant)} of {profile.dimension:,} dimensions have one value in every row, dimension "
            f"{profile.constant[0]} first.",
            "They take room and tell no text from another: padded, or a damaged export.",
            "Name the checkpoint: embaudit vectors CHECKPOINT FILE",
            name="constant_dimensions",
            value=float(len(profile.constant)),
        )
    yield from _two_kinds(index, alone)
    yield from _neighbours(index, alone)


def _are_constant(alone: VectorProfile) -> bool:
    """Whether dimensions say nothing by more than chance: a few codes or counts of words are alike, and a few zeros are
    the model's."""
    if not alone.profile.constant:
        return False
    vectors = alone.profile.sample.vectors
    is_chance = vectors.dtype.kind != "f" or float((vectors[:1_000] == 0).mean()) > SPARSE
    enough = FEWEST_ROWS if is_chance else 2
    return len(alone.profile.constant) > FEW_CONSTANT * alone.profile.dimension and alone.different >= enough


def _of_all(index: Store, rows: np.ndarray) -> str:
    """What that means for all rows, where only some were read."""
    if index.drawn is None:
        return ""
    share, low, high = index.drawn.share(rows)
    return f" (of all {index.drawn.rows:,} rows {share:.2g} [{low:.2g}, {high:.2g}])"


def _dimensions(alone: VectorProfile) -> Iterator[Finding]:
    profile = alone.profile
    others = {dimension: count for dimension, count in profile.dimensions.items() if dimension != profile.dimension}
    if others:
        named = ", ".join(f"{count:,} of {dimension:,}" for dimension, count in list(others.items())[:4])
        yield Finding(
            "problem",
            f"Vectors have different lengths: {profile.dimensions[profile.dimension]:,} rows of {profile.dimension:,} "
            f"numbers, {named}; row {profile.first_odd + 1:,} is the first.",
            "Two models share the index, or rows were cut.",
            "Encode these rows again by the model of the others.",
            "mixed_dimensions",
            float(sum(others.values())),
        )
    # That no row at all has one is said by itself.
    if profile.without_vector and profile.dimensions:
        yield Finding(
            "problem",
            f"{profile.without_vector:,} of {profile.rows:,} rows have no vector, row {profile.first_without + 1:,} "
            "first.",
            "No search finds them.",
            "Encode these rows.",
            "no_vector",
            float(profile.without_vector),
        )


def _equal(index: Store, alone: VectorProfile) -> Iterator[Finding]:
    groups, rows = alone.repeats.groups, alone.profile.rows
    group = groups[0] if groups else None
    size = 0 if group is None else group.rows if group.texts is None else group.texts
    if group is not None and size >= GROUP:
        is_large = size >= max(GROUP, GROUP_SHARE * rows)
        texts = [alone.shown.get(number, (None, None))[0] for number in group.numbers]
        shown = ", ".join(quoted(text) for text in texts if text is not None)
        what = f"{size:,} different texts have" if group.texts is not None else f"{size:,} rows have"
        yield Finding(
            # Two texts may have one code.
            "problem" if is_large and group.texts is not None and index.rounded is None else "look",
            f"{what} one and the same vector"
            + (f": {shown}" if shown else f", row {group.numbers[0] + 1:,} first")
            + f". {alone.repeats.rows_in_groups:,} of {rows:,} rows share theirs with another"
            + (" text." if group.texts is not None else " row."),
            "A search cannot tell them apart. Texts that a model reads alike (case, white space, beyond its limit) "
            "are such rows, and so are those of an encoder that failed.",
            "Encode a few of them again and compare.",
            "equal_vectors",
            float(size),
        )
    worst = float(alone.split_apart.max()) if len(alone.split_apart) else 0.0
    # Servers round otherwise from one call to the next.
    if worst > HALF:
        yield Finding(
            "look",
            f"{alone.repeats.split_texts:,} texts are stored several times with different vectors (1 − cosine up to "
            f"{worst:.2g}).",
            "Rounding in half precision gives up to 2e-3; this is two models, two prompts, or something else that was "
            "embedded than this text.",
            "Encode these texts again, all by one function.",
            name="one_text_two_vectors",
            value=worst,
        )


def _crowded(alone: VectorProfile) -> Iterator[Finding]:
    mean, rank = alone.mean_cosine, alone.effective_rank
    if mean is None or alone.independent < FEWEST_DIFFERENT:
        return
    is_few = alone.profile.usable.sum() < FEWEST_ROWS
    is_flat = rank is None or (rank < FEW_DIRECTIONS and alone.profile.dimension > 4 * FEW_DIRECTIONS)
    # A few texts about one thing are near each other.
    if mean >= (COLLAPSED if is_few else CROWDED) or is_flat:
        directions = "no direction at all" if rank is None else f"about {rank:.0f} directions"
        yield Finding(
            "problem" if mean >= COLLAPSED or is_flat else "look",
            f"Vectors are nearly alike: two rows have a cosine of {mean:.3f} on average, and they vary in {directions} "
            f"of {alone.profile.dimension:,}.",
            "A search ranks by rounding, or by what all rows have in common.",
            "Compare with the checkpoint, and see `embaudit check` on it.",
            "collapse",
            mean,
        )


def _two_kinds(index: Store, alone: VectorProfile) -> Iterator[Finding]:
    sample = alone.profile.sample
    for found, sentence, meaning in (
        (
            alone.spaces,
            "Rows lie in two groups that vary in unrelated directions",
            "Two models in one index do so, and so may two very different kinds of texts.",
        ),
        (
            alone.lengths,
            "Vectors have two lengths with nothing between",
            "Some rows are normalised and others not, or two models share the index: by dot product, the longer win.",
        ),
    ):
        if found is None:
            continue
        names = [label(index, int(sample.numbers[own[0]]), sample.ids[own[0]]) for own in found.places]
        yield Finding(
            "look",
            f"{sentence}: {found.share:.0%} of a sample in the smaller one "
            f"({names[0]} is in one, {names[1]} in the other).",
            meaning,
            "Name the checkpoint: embaudit vectors CHECKPOINT FILE",
            f"two_{found.what}",
            found.share,
        )


def _neighbours(index: Store, alone: VectorProfile) -> Iterator[Finding]:
    profile, found = alone.profile, alone.neighbours
    if alone.outliers > OUTLIERS * profile.rows:
        yield Finding(
            "look",
            f"{alone.outliers:,} of {profile.rows:,} vectors are more than 3 standard deviations longer or shorter "
            "than the others.",
            "By dot product, the longest come first for any query.",
            "Rank by cosine, or normalise what is stored.",
            name="norm_outliers",
            value=float(alone.outliers),
        )
    if found is None:
        return
    share, low, high = found.largest_share
    if low > HUB and not found.is_few:
        number = int(profile.numbers[profile.usable][found.largest])
        yield Finding(
            "look",
            f"Row {number + 1:,} is among the ten nearest of {share:.0%}{_from_sample(low, high)} of all rows.",
            "Its vector is near the mean of all: it comes up for queries that have little to do with it.",
            "Read its text; take it out if it says nothing.",
            "hub",
            share,
            low,
            high,
        )
    share, low, high = found.copy_share
    has_texts = alone.copies is not None and alone.copies.rows > 0
    # Those that repeat a text are said as that.
    if low > max(COPIES, 2 * alone.repeating):
        yield Finding(
            "look",
            f"{share:.0%}{_from_sample(low, high)} of the rows have another at a cosine of {COPY} or more"
            f"{', and not all of these have its text' if has_texts else ''}.",
            "They take each other's places among the first results.",
            "Read two of them: texts that are alike but for a word, or beyond what the model reads, are such rows, and "
            "so are those of an encoder that failed."
            if has_texts
            else "Remove duplicates before they are indexed.",
            "copies",
            share,
            low,
            high,
        )


def _from_sample(low: float, high: float) -> str:
    """The interval of a share; nothing behind one that is exact."""
    return f"{interval(low, high, '.0%')} (95 % interval)" if low < high else ""


def findings_against(alone: VectorProfile, against: SampleComparison) -> Iterator[Finding]:
    """Whether the checkpoint built the index, and what explains the rows that it did not."""
    usual = alone.profile.dimension
    if against.is_another_dimension:
        yield another_dimension(usual, against.dimension, against.kind, _because(against))
        return
    assert against.form is not None
    if against.is_blind and not against.is_foreign.any():
        yield Finding(
            "not measured",
            f"Vectors are stored {against.form.said}: {against.form.confuses:.0%} of rows would pass for the row of "
            f"another text, so that it cannot be told whether they are the {against.kind}'s.",
            "Nothing contradicts it.",
            "Compare what the index was built from.",
            "coarse_codes",
            against.form.confuses,
        )
        return
    share = against.share
    if share is None:
        yield Finding(
            "not measured",
            f"The {against.kind} gives none of {len(against.rows):,} texts of a sample a vector, so no row can be "
            "compared.",
            "What is said here is of the stored vectors alone.",
            LOOK_FIRST.format(against.kind),
            "no_texts",
        )
        return
    value, low, high = share
    trials = int(against.compared.sum())
    own = against.distances[against.compared & ~against.differs]
    if not against.is_foreign.any():
        of = "with a text" if against.is_exact else "of a sample"
        all_rows = f"All {trials:,} rows" if trials > 1 else "The one row"
        bound = f", so at most {high:.2%} of {against.population:,} are not (95 % interval)"
        yield Finding(
            "ok",
            f"{all_rows} {of} {'have' if trials > 1 else 'has'} the {against.kind}'s vector (1 − cosine at most "
            f"{own.max():.1e}){EXACT if against.is_exact else bound}.",
            name="own_vectors",
            value=value,
            low=low,
            high=high,
        )
    else:
        foreign = f"of the rows were not built by this {against.kind}: {int(against.is_foreign.sum()):,} of"
        yield Finding(
            "problem",
            f"{value:.2%} {foreign} {trials:,}{EXACT}{_because(against)}."
            if against.is_exact
            else f"{value:.2%} [{low:.2%}, {high:.2%}] {foreign} a sample of {trials:,} (95 % interval)"
            f"{_because(against)}.",
            "Queries are compared with vectors of another function: these rows are found by chance, or not at all.",
            "Encode these rows again; --all --table FILE lists each one."
            if value < 0.5
            else f"Encode the index again, or use the {against.kind} as it was used for the index.",
            "other_vectors",
            value,
            low,
            high,
        )
    yield from _how_stored(alone, against, own)


def another_dimension(usual: int, own: int, kind: str, because: str = "") -> Finding:
    """An index whose vectors are longer than the function's, or shorter and no part of them."""
    part = "" if usual > own else ", and are not the first numbers of these"
    return Finding(
        "problem",
        f"Its vectors have {usual:,} dimensions, the {kind}'s {own:,}{part}{because}.",
        f"Queries that the {kind} encodes cannot be compared with it; nothing else was tried.",
        "Name the function that built it.",
        "another_dimension",
        float(usual),
    )


def _because(against: SampleComparison) -> str:
    """The reasons as further sentences, without the last full stop."""
    told = [reason for reason in against.reasons if not reason.is_rounding]
    return "".join(f". {len(reason.places):,} of them {reason.said}" for reason in told)


def _how_stored(alone: VectorProfile, against: SampleComparison, own: np.ndarray) -> Iterator[Finding]:
    form = against.form
    assert form is not None
    if form.said and len(own):
        yield Finding(
            "look",
            f"Vectors are stored {form.said}.",
            f"What the {against.kind} gives beyond them is left out: neighbours may be others."
            if alone.profile.dimension < against.dimension
            else f"They are the {against.kind}'s in lower precision: neighbours that are nearly tied change places.",
            "Bring queries to the same form, or compare again in float32 what the index finds.",
            "stored_form",
        )
    if against.is_in_lower_precision:
        because = (
            f" as {against.rounding} rounds" if against.rounding else ", and not as bfloat16 or float16 round here"
        )
        is_told = against.rounding or form.ceiling > HALF
        yield Finding(
            "look",
            f"Vectors differ by more than float32 rounds{'' if form.ceiling > HALF else because} (1 − cosine "
            f"{float(np.median(own)):.1e} at the median).",
            "The index was built in lower precision."
            if is_told
            else "Lower precision on another machine, or a revision that was hardly trained further.",
            "Encode queries in the same precision."
            if is_told
            else "Name the revision that built it, if there is another.",
            "precision",
            float(np.median(own)),
        )
    for reason in (reason for reason in against.reasons if reason.is_rounding):
        yield Finding(
            "look",
            f"{len(reason.places):,} of {int(against.compared.sum()):,} rows {reason.said}.",
            "The index was built in two precisions; neighbours that are nearly tied may change places.",
            "To have one, encode these rows again.",
            name="two_precisions",
            value=float(len(reason.places)),
        )
    if is_other_length(against.length_ratio):
        yield Finding(
            "look",
            f"Vectors point as the {against.kind}'s do and are {against.length_ratio:.3g} times as long.",
            "Cosine does not change; a dot product does. Many databases normalise what they store.",
            "Rank by cosine, or normalise both.",
            name="another_length",
            value=against.length_ratio,
        )
