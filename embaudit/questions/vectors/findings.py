"""What follows from an index's figures, in words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from embaudit.declared.rule import Finding, Rule, interval, number, percent
from embaudit.questions.parity.compare import HALF, SAME
from embaudit.questions.vectors.against import CONFUSED, SampleComparison, is_other_length
from embaudit.questions.vectors.alone import VectorProfile
from embaudit.questions.vectors.forms import SPREAD
from embaudit.questions.vectors.neighbours import COPY, FEWEST_ROWS
from embaudit.questions.vectors.profile import EXACT, LOOK_FIRST, label
from embaudit.questions.vectors.text_copies import copy_findings
from embaudit.stores.store import Store
from embaudit.words.sentences import quoted

# Different texts, and of the rows.
GROUP, GROUP_SHARE = 5, 1e-3
FEW_DIRECTIONS = 5.0
# Different texts, or rows, that could lie in four times as many directions.
FEWEST_DIFFERENT = 20
# all-MiniLM-L6-v2 gives zero, but for 1e-33, in 3 of 384 dimensions: in an export with fewer digits they are zeros.
FEW_CONSTANT = 0.01
# Vectors with so many zeros count words.
SPARSE = 0.5
MIXED_DIMENSIONS = Rule(
    "mixed_dimensions",
    problem_if="rows of several numbers of dimensions",
    reason="two models share the index, or rows were cut",
)
NO_VECTOR = Rule("no_vector", problem_if="rows without a vector", reason="no search finds them")
NOT_FINITE = Rule(
    "not_finite", problem_if="NaN or infinity", reason="no search finds them, and some indexes refuse them"
)
ZEROS = Rule("zeros", problem_if="zeros only", reason=NOT_FINITE.reason)
EQUAL_VECTORS = Rule(
    "equal_vectors",
    look_if=f"{GROUP} rows, or different texts whose vectors are codes, have one vector",
    problem_if=f"{GROUP} different texts, and {percent(GROUP_SHARE)} of the rows",
    reason="then it is no matter of texts that are read alike (case, white space, beyond the limit)",
)
ONE_TEXT = Rule(
    "one_text_two_vectors",
    look_if=f"1 − cosine above {number(HALF)} between the vectors of one text",
    reason="half precision rounds by up to that; more is two models, two prompts, or something else that was embedded",
)
COLLAPSE = Rule(
    "collapse",
    "mean cosine of all pairs",
    look=0.8,
    problem=0.95,
    problem_if=f"from {{problem}}, or fewer than {number(FEW_DIRECTIONS)} directions of {FEWEST_ROWS} rows or more",
    reason=f"then all are nearly one vector; well-known models reach .85. Below {FEWEST_ROWS} rows only from "
    f"{{problem}}, and not below {FEWEST_DIFFERENT} different texts: a few about one thing are near each other",
)
CONSTANT = Rule(
    "constant_dimensions",
    look_if=f"more than {percent(FEW_CONSTANT)} of the dimensions have one value in every row, and the vectors do not "
    "count words",
    reason="padded, or a damaged export; some models give a few dimensions that are always zero",
)
TWO_KINDS = Rule(
    "two_{what}",
    look_if="two groups of rows that vary in unrelated directions (`two_spaces`), or two lengths with nothing between "
    "(`two_lengths`)",
    reason="two models in one index; said only where groups are as unrelated as two spaces are, which topics hardly "
    "ever are",
)
OUTLIERS = Rule(
    "norm_outliers",
    "share of vectors more than 3 standard deviations longer or shorter",
    look=0.01,
    is_share=True,
    look_if="above {look}",
    reason="by dot product, the longest come first for any query",
)
HUB = Rule(
    "hub",
    "share of rows that have one row among their ten nearest",
    look=0.1,
    is_share=True,
    look_if="interval above {look}",
    reason="it comes up whatever is asked",
)
COPIES = Rule(
    "copies",
    f"share of rows with another at a cosine of {number(COPY)} or more",
    look=0.05,
    is_share=True,
    look_if="interval above {look}, and twice the share of rows that repeat a text",
    reason="copies take each other's places among the first results",
)
OTHER_DIMENSION = Rule(
    "another_dimension",
    problem_if="the function's vectors have another number of dimensions, and are no part of them",
    reason="they cannot be compared with it",
)
CODES = Rule(
    "coarse_codes",
    reason=f"`not measured`: more than {percent(CONFUSED)} of the rows would pass for the row of another text",
)
NO_TEXTS = Rule("no_texts", reason="`not measured`: rows have no texts, or the function gives them no vector")
OWN_VECTORS = Rule(
    "own_vectors",
    reason="`ok`: the rows of the sample have the function's vectors, up to how many others the interval allows",
)
OTHER_VECTORS = Rule(
    "other_vectors",
    problem_if=f"a row's vector is not the function's: 1 − cosine above {number(SAME)}, above {SPREAD} times the "
    f"median of the rows that half precision ({number(HALF)}) allows, and above what its form rounds",
    reason="queries are compared with vectors of another function: such rows are found by chance, or not at all",
)
STORED_FORM = Rule(
    "stored_form",
    look_if="rows are stored as codes or by their first dimensions",
    reason="neighbours that are nearly tied change places",
)
PRECISION = Rule(
    "precision",
    look_if="all rows are the function's in lower precision",
    reason="the index was built so, or by a revision that was hardly trained further",
)
TWO_PRECISIONS = Rule(
    "two_precisions",
    look_if="some rows are the function's in lower precision",
    reason="neighbours that are nearly tied may change places",
)
OTHER_LENGTH = Rule(
    "another_length",
    look_if="rows point as the function's vectors do, and have another length",
    reason="cosine does not change, and a dot product does",
)


def findings_alone(index: Store, alone: VectorProfile) -> Iterator[Finding]:
    """Problems of the vectors themselves, and what else to know."""
    profile = alone.profile
    yield from _dimensions(alone)
    for rows, what, rule in (
        (profile.not_finite, "NaN or infinity", NOT_FINITE),
        (profile.zeros, "zeros only", ZEROS),
    ):
        if len(rows):
            yield rule.finding(
                "problem",
                f"{len(rows):,} of {profile.rows:,} vectors hold {what}{_of_all(index, rows)}, row "
                f"{int(rows[0]) + 1:,} first.",
                "No search finds them, and some indexes refuse them.",
                "Encode these rows again.",
                float(len(rows)),
            )
    yield from _equal(index, alone)
    yield from copy_findings(alone.copies)
    yield from _crowded(alone)
    if _are_constant(alone):
        yield CONSTANT.finding(
            "look",
            f"{len(profile.constant)} of {profile.dimension:,} dimensions have one value in every row, dimension "
            f"{profile.constant[0]} first.",
            "They take room and tell no text from another: padded, or a damaged export.",
            "Name the checkpoint: embaudit vectors FILE CHECKPOINT",
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
        yield MIXED_DIMENSIONS.finding(
            "problem",
            f"Vectors have different lengths: {profile.dimensions[profile.dimension]:,} rows of {profile.dimension:,} "
            f"numbers, {named}; row {profile.first_odd + 1:,} is the first.",
            "Two models share the index, or rows were cut.",
            "Encode these rows again by the model of the others.",
            float(sum(others.values())),
        )
    # That no row at all has one is said by itself.
    if profile.without_vector and profile.dimensions:
        yield NO_VECTOR.finding(
            "problem",
            f"{profile.without_vector:,} of {profile.rows:,} rows have no vector, row {profile.first_without + 1:,} "
            "first.",
            "No search finds them.",
            "Encode these rows.",
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
        yield EQUAL_VECTORS.finding(
            # Two texts may have one code.
            "problem" if is_large and group.texts is not None and index.rounded is None else "look",
            f"{what} one and the same vector"
            + (f": {shown}" if shown else f", row {group.numbers[0] + 1:,} first")
            + f". {alone.repeats.rows_in_groups:,} of {rows:,} rows share theirs with another"
            + (" text." if group.texts is not None else " row."),
            "A search cannot tell them apart. Texts that a model reads alike (case, white space, beyond its limit) "
            "are such rows, and so are those of an encoder that failed.",
            "Encode a few of them again and compare.",
            float(size),
        )
    worst = float(alone.split_apart.max()) if len(alone.split_apart) else 0.0
    # Servers round otherwise from one call to the next.
    if worst > HALF:
        yield ONE_TEXT.finding(
            "look",
            f"{alone.repeats.split_texts:,} texts are stored several times with different vectors (1 − cosine up to "
            f"{worst:.2g}).",
            "Rounding in half precision gives up to 2e-3; this is two models, two prompts, or something else that was "
            "embedded than this text.",
            "Encode these texts again, all by one function.",
            value=worst,
        )


def _crowded(alone: VectorProfile) -> Iterator[Finding]:
    mean, rank = alone.mean_cosine, alone.effective_rank
    if mean is None or alone.independent < FEWEST_DIFFERENT:
        return
    is_few = alone.profile.usable.sum() < FEWEST_ROWS
    is_flat = rank is None or (rank < FEW_DIRECTIONS and alone.profile.dimension > 4 * FEW_DIRECTIONS)
    # A few texts about one thing are near each other.
    if mean >= (COLLAPSE.problem if is_few else COLLAPSE.look) or is_flat:
        directions = "no direction at all" if rank is None else f"about {rank:.0f} directions"
        yield COLLAPSE.finding(
            # A few texts about one thing may vary in as few directions as they say things.
            "problem" if is_flat and not is_few else COLLAPSE.level(max(mean, COLLAPSE.look)),
            f"Vectors are nearly alike: two rows have a cosine of {mean:.3f} on average, and they vary in {directions} "
            f"of {alone.profile.dimension:,}.",
            "A search ranks by rounding, or by what all rows have in common.",
            "Compare with the checkpoint, and see `embaudit check` on it.",
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
        yield TWO_KINDS.finding(
            "look",
            f"{sentence}: {found.share:.0%} of a sample in the smaller one "
            f"({names[0]} is in one, {names[1]} in the other).",
            meaning,
            "Name the checkpoint: embaudit vectors FILE CHECKPOINT",
            found.share,
            what=found.what,
        )


def _neighbours(index: Store, alone: VectorProfile) -> Iterator[Finding]:
    profile, found = alone.profile, alone.neighbours
    if alone.outliers > OUTLIERS.look * profile.rows:
        yield OUTLIERS.finding(
            "look",
            f"{alone.outliers:,} of {profile.rows:,} vectors are more than 3 standard deviations longer or shorter "
            "than the others.",
            "By dot product, the longest come first for any query.",
            "Rank by cosine, or normalise what is stored.",
            value=float(alone.outliers),
        )
    if found is None:
        return
    share, low, high = found.largest_share
    if low > HUB.look and not found.is_few:
        number = int(profile.numbers[profile.usable][found.largest])
        yield HUB.finding(
            "look",
            f"Row {number + 1:,} is among the ten nearest of {share:.0%}{_from_sample(low, high)} of all rows.",
            "Its vector is near the mean of all: it comes up for queries that have little to do with it.",
            "Read its text; take it out if it says nothing.",
            share,
            low,
            high,
        )
    share, low, high = found.copy_share
    has_texts = alone.copies is not None and alone.copies.rows > 0
    # Those that repeat a text are said as that.
    if low > max(COPIES.look, 2 * alone.repeating):
        yield COPIES.finding(
            "look",
            f"{share:.0%}{_from_sample(low, high)} of the rows have another at a cosine of {COPY} or more"
            f"{', and not all of these have its text' if has_texts else ''}.",
            "They take each other's places among the first results.",
            "Read two of them: texts that are alike but for a word, or beyond what the model reads, are such rows, and "
            "so are those of an encoder that failed."
            if has_texts
            else "Remove duplicates before they are indexed.",
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
        yield CODES.finding(
            "not measured",
            f"Vectors are stored {against.form.said}: {against.form.confuses:.0%} of rows would pass for the row of "
            f"another text, so that it cannot be told whether they are the {against.kind}'s.",
            "Nothing contradicts it.",
            "Compare what the index was built from.",
            against.form.confuses,
        )
        return
    share = against.share
    if share is None:
        yield NO_TEXTS.finding(
            "not measured",
            f"The {against.kind} gives none of {len(against.rows):,} texts of a sample a vector, so no row can be "
            "compared.",
            "What is said here is of the stored vectors alone.",
            LOOK_FIRST.format(against.kind),
        )
        return
    value, low, high = share
    trials = int(against.compared.sum())
    own = against.distances[against.compared & ~against.differs]
    if not against.is_foreign.any():
        of = "with a text" if against.is_exact else "of a sample"
        all_rows = f"All {trials:,} rows" if trials > 1 else "The one row"
        bound = f", so at most {high:.2%} of {against.population:,} are not (95 % interval)"
        yield OWN_VECTORS.finding(
            "ok",
            f"{all_rows} {of} {'have' if trials > 1 else 'has'} the {against.kind}'s vector (1 − cosine at most "
            f"{own.max():.1e}){EXACT if against.is_exact else bound}.",
            value=value,
            low=low,
            high=high,
        )
    else:
        foreign = f"of the rows were not built by this {against.kind}: {int(against.is_foreign.sum()):,} of"
        yield OTHER_VECTORS.finding(
            "problem",
            f"{value:.2%} {foreign} {trials:,}{EXACT}{_because(against)}."
            if against.is_exact
            else f"{value:.2%} [{low:.2%}, {high:.2%}] {foreign} a sample of {trials:,} (95 % interval)"
            f"{_because(against)}.",
            "Queries are compared with vectors of another function: these rows are found by chance, or not at all.",
            "Encode these rows again; --all --table FILE lists each one."
            if value < 0.5
            else f"Encode the index again, or use the {against.kind} as it was used for the index.",
            value,
            low,
            high,
        )
    yield from _how_stored(alone, against, own)


def another_dimension(usual: int, own: int, kind: str, because: str = "") -> Finding:
    """An index whose vectors are longer than the function's, or shorter and no part of them."""
    part = "" if usual > own else ", and are not the first numbers of these"
    return OTHER_DIMENSION.finding(
        "problem",
        f"Its vectors have {usual:,} dimensions, the {kind}'s {own:,}{part}{because}.",
        f"Queries that the {kind} encodes cannot be compared with it; nothing else was tried.",
        "Name the function that built it.",
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
        yield STORED_FORM.finding(
            "look",
            f"Vectors are stored {form.said}.",
            f"What the {against.kind} gives beyond them is left out: neighbours may be others."
            if alone.profile.dimension < against.dimension
            else f"They are the {against.kind}'s in lower precision: neighbours that are nearly tied change places.",
            "Bring queries to the same form, or compare again in float32 what the index finds.",
        )
    if against.is_in_lower_precision:
        because = (
            f" as {against.rounding} rounds" if against.rounding else ", and not as bfloat16 or float16 round here"
        )
        is_told = against.rounding or form.ceiling > HALF
        yield PRECISION.finding(
            "look",
            f"Vectors differ by more than float32 rounds{'' if form.ceiling > HALF else because} (1 − cosine "
            f"{float(np.median(own)):.1e} at the median).",
            "The index was built in lower precision."
            if is_told
            else "Lower precision on another machine, or a revision that was hardly trained further.",
            "Encode queries in the same precision."
            if is_told
            else "Name the revision that built it, if there is another.",
            float(np.median(own)),
        )
    for reason in (reason for reason in against.reasons if reason.is_rounding):
        yield TWO_PRECISIONS.finding(
            "look",
            f"{len(reason.places):,} of {int(against.compared.sum()):,} rows {reason.said}.",
            "The index was built in two precisions; neighbours that are nearly tied may change places.",
            "To have one, encode these rows again.",
            value=float(len(reason.places)),
        )
    if is_other_length(against.length_ratio):
        yield OTHER_LENGTH.finding(
            "look",
            f"Vectors point as the {against.kind}'s do and are {against.length_ratio:.3g} times as long.",
            "Cosine does not change; a dot product does. Many databases normalise what they store.",
            "Rank by cosine, or normalise both.",
            value=against.length_ratio,
        )
