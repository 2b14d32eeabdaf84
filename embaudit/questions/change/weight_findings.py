"""Findings about the weights beside the base's: nothing changed, what moved, what has nothing to do with the base."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from embaudit.declared.document import count
from embaudit.declared.rule import Finding, Rule, number, percent
from embaudit.questions.change.tensors import block_of, relative
from embaudit.questions.change.weights import MOST, UNRELATED, RowChange, WeightChange
from embaudit.words.estimate import shown
from embaudit.words.sentences import first_of

NAMED_AT_MOST = 3
# Of its length, and times as far as the block in the middle.
FAR, TIMES = 0.5, 10.0
NOTHING = Rule(
    "nothing_changed",
    problem_if="every tensor that a vector depends on is equal, bit by bit or once the base is rounded to the shorter "
    "format that the checkpoint was saved in",
    reason="what is served is the base: adapters that were not merged, shards that were not gathered, the wrong model "
    "saved",
)
ONLY_UNREAD = Rule(
    "only_unread_changed",
    problem_if="the same, and a pooler or head in the file differs",
    reason="the training went into what an embedding does not use",
)
CHANGED = Rule(
    "weights_changed",
    reason="`ok`: how much moved, by ‖Δ‖/‖W‖, and what stands still; frozen layers are normal. `not measured` if less "
    "than half of the numbers in layers have a counterpart",
)
STILL = Rule(
    "matrices_stand_still",
    look_if="norms and biases in layers moved, and no matrix did",
    reason="on purpose in some methods; otherwise gradients that were lost in sharded training",
)
REPLACED = Rule(
    "replaced_blocks",
    look_if=f"{percent(MOST)} of a block's matrices have a cosine below {number(UNRELATED)} to the base's, and are "
    "trained",
    problem_if="the same, and they are random numbers",
    reason="independent matrices of 1 024 numbers stay within ±.1; a matrix with noise of half its spread keeps .9. "
    "If most blocks do, it was not made from this base",
)
UNEVEN = Rule(
    "uneven_blocks",
    look=FAR,
    look_if=f"a block moved by {{look}} of its length (‖Δ‖/‖W‖) and at least {number(TIMES)} times as far as the one "
    "in the middle",
    reason="training moves layers together, by a few hundredths; noise as long as the weights themselves leaves a "
    "cosine of .7, and is not `replaced_blocks`",
)
MOVED = Rule(
    "moved_blocks",
    problem_if="a block holds what another block of the base holds",
    reason="layers in another order; `ok` if the two have different numbers of layers, as after pruning",
)


def weight_findings(change: WeightChange) -> list[Finding]:
    """Findings about the weights; one of them says how much moved, unless nothing did."""
    if change.extent == "incomparable":
        return [_incomparable(change)]
    if change.extent == "nothing":
        return [_nothing(change)]
    findings = [
        finding for part in (_random, _places, _unrelated, _uneven, _still) if (finding := part(change)) is not None
    ]
    return [*findings, _moved(change)]


def _incomparable(change: WeightChange) -> Finding:
    return CHANGED.finding(
        "not measured",
        f"The weights were not compared: the base is another architecture ({100 * change.comparable:.0f} % of the "
        "numbers in layers have a counterpart of the same name and shape).",
        "What comes out of the two can be compared, not what is in them.",
        value=change.comparable,
    )


def _nothing(change: WeightChange) -> Finding:
    rounded = sorted({tensor.rounded_to for tensor in change.tensors if tensor.status == "rounded"})
    read = [tensor for tensor in change.tensors if tensor.shape is not None]
    how = f"once the base is rounded to {' and '.join(rounded)}" if rounded else "bit by bit"
    same = f"all {len(read)} tensors that a vector depends on are the base's, {how}"
    if change.rows is not None and change.rows.removed:
        same += f" ({change.rows.removed:,} rows of the input embeddings were removed)"
    if change.unread:
        return ONLY_UNREAD.finding(
            "problem",
            f"Only {count(len(change.unread), 'tensor')} that no vector depends on "
            f"{'has' if len(change.unread) == 1 else 'have'} changed ({first_of(change.unread)}); {same}.",
            "The network computes what the base computes: the training went into a head or pooler that an embedding "
            "does not use.",
            "Train the pooled vector itself (a sentence-transformers loss), and check that the encoder is not frozen "
            "(requires_grad) and is the one in the optimizer.",
            float(len(change.unread)),
        )
    return NOTHING.finding(
        "problem",
        f"No weight has changed: {same}.",
        "The training did not reach the saved weights: the network is the base's.",
        "Save the trained model and not the one that was loaded: an adapter has to be merged first (merge_and_unload), "
        "shards of a distributed training have to be gathered, and parameters need requires_grad and a place in the "
        "optimizer.",
        0.0,
    )


def _random(change: WeightChange) -> Finding | None:
    if not change.random:
        return None
    tensors = [tensor for block in change.blocks if block.name in change.random for tensor in block.tensors]
    return REPLACED.finding(
        "problem",
        f"{_count(change.random, 'block')} {'holds' if len(change.random) == 1 else 'hold'} random numbers where the "
        f"base has trained ones: {first_of(change.random)} (‖Δ‖/‖W‖ {_ratio(relative(tensors))}, "
        "cosine to the base near 0).",
        "They were initialised again when the model was loaded or saved, or were never loaded.",
        "Compare the names of tensors in both files: a prefix, or layers that were not in the file that was trained "
        "from.",
        float(len(change.random)),
    )


def _places(change: WeightChange) -> Finding | None:
    if not change.places:
        return None
    said = "; ".join(f"{name} = the base's {place}" for name, place in change.places[:NAMED_AT_MOST])
    has_other_depth = any(tensor.shape is None or tensor.before is None for tensor in change.tensors)
    return MOVED.finding(
        "ok" if has_other_depth else "problem",
        f"{_count([name for name, _ in change.places], 'block')} {'holds' if len(change.places) == 1 else 'hold'} what "
        f"another block of the base holds: {said}{' …' if len(change.places) > NAMED_AT_MOST else ''}.",
        "The layers run in another order than they were trained in.",
        "Compare the numbers of layers in the names of both files.",
        float(len(change.places)),
    )


def _unrelated(change: WeightChange) -> Finding | None:
    explained = {*change.random, *(name for name, _ in change.places)}
    if change.rows is not None and change.rows.elsewhere:
        explained.add(block_of(change.table))
    names = [name for name in change.replaced if name not in explained]
    if not names:
        return None
    is_all = len(names) >= MOST * len(change.blocks)
    return REPLACED.finding(
        "look",
        f"{_count(names, 'block')} {'has' if len(names) == 1 else 'have'} nothing to do with the base's: "
        f"{first_of(names)} (cosine near 0), though {'it is' if len(names) == 1 else 'they are'} trained"
        + (": it was not made from this base." if is_all else "."),
        "What is said of gains and losses compares two networks, not what a tuning did."
        if is_all
        else "Layers that were initialised again and trained from nothing look like this, and so do layers of another "
        "checkpoint.",
        "Check which base it was made from.",
        float(len(names)),
    )


def _uneven(change: WeightChange) -> Finding | None:
    """Blocks that moved far while the others hardly did, and still resemble the base's."""
    explained = {*change.random, *change.replaced, *(name for name, _ in change.places)}
    blocks = {block.name: block.relative for block in change.blocks if block.relative is not None}
    if len(blocks) < 3 or (change.rows is not None and change.rows.elsewhere):
        return None
    middle = median(blocks.values())
    far = {name: by for name, by in blocks.items() if by >= max(FAR, TIMES * middle) and name not in explained}
    if not far:
        return None
    said = first_of([f"{name} ({_ratio(by)})" for name, by in far.items()])
    return UNEVEN.finding(
        "look",
        f"{_count(list(far), 'block')} moved by half of {'its' if len(far) == 1 else 'their'} length or more while the "
        f"others hardly did: {said}; the one in the middle moved by {_ratio(middle)} (‖Δ‖/‖W‖).",
        "Training moves layers together. Noise, a merge, or a part of another checkpoint looks like this, and so does "
        "a layer that alone was trained for long.",
        "Check where that layer comes from: compare its tensors with those of the checkpoint before.",
        max(far.values()),
    )


def _still(change: WeightChange) -> Finding | None:
    """Norms and biases moved, and no matrix of any layer: gradients did not reach them, or only these were tuned."""
    in_layers = [tensor for tensor in change.tensors if tensor.is_in_layer]
    matrices = [tensor for tensor in in_layers if tensor.is_matrix]
    others = [tensor for tensor in in_layers if not tensor.is_matrix and tensor.status == "moved"]
    if not matrices or not others or any(tensor.status not in ("same", "rounded") for tensor in matrices):
        return None
    return STILL.finding(
        "look",
        f"None of the {len(matrices)} matrices in the layers has moved, while {len(others)} of their norms and biases "
        "have.",
        "Some tune only these on purpose; otherwise gradients did not reach the matrices (seen with sharded training), "
        "or an adapter was saved without being merged.",
        "If the matrices were to be trained, check that their gradients are not None after a step.",
        float(len(matrices)),
    )


def _moved(change: WeightChange) -> Finding:
    """How much moved, where most, and what stands still: all of it is normal."""
    tensors = [tensor for tensor in change.tensors if tensor.compared]
    moved = [tensor for tensor in tensors if tensor.status == "moved"]
    blocks = [block for block in change.blocks if block.moved and block.relative is not None]
    share = sum(tensor.moved for tensor in tensors) / change.compared
    sentences = [
        f"{len(moved)} of {len(tensors)} tensors and {_percent(share)} of {_numbers(change.compared)} have moved, by "
        f"{_ratio(relative(tensors))} of their length (‖Δ‖/‖W‖)"
    ]
    if len(blocks) > 1:
        least, most = (end(blocks, key=lambda block: block.relative or 0.0) for end in (min, max))
        sentences[0] += (
            f": least in {least.name} ({_ratio(least.relative)}), most in {most.name} ({_ratio(most.relative)})"
        )
    still = [block.name for block in change.blocks if block.is_unchanged]
    if still:
        sentences.append(f"{first_of(still)} stand{'s' if len(still) == 1 else ''} still")
    for what, names in (
        ("is new", [tensor.name for tensor in change.tensors if tensor.status == "added"]),
        ("is gone", [tensor.name for tensor in change.tensors if tensor.status == "removed"]),
        ("has another shape", [tensor.name for tensor in change.tensors if tensor.status == "reshaped"]),
    ):
        if names:
            sentences.append(f"{first_of(list(dict.fromkeys(map(block_of, names))))} {what}")
    if change.rows is not None:
        sentences.append(_of_rows(change.rows))
    rounded = sorted({tensor.rounded_to for tensor in tensors if tensor.rounded_to})
    # A gain of all ones is of any format.
    if sum(tensor.compared for tensor in tensors if tensor.rounded_to) > MOST * change.compared:
        sentences.append(f"What rounding to {' and '.join(rounded)} changed is not counted")
    value = relative(tensors)
    return CHANGED.finding("ok", ". ".join(sentences) + ".", value=value)


def _of_rows(rows: RowChange) -> str:
    if not rows.moved:
        return f"None of the {rows.compared:,} rows of the input embeddings moved"
    if rows.moved == rows.compared:
        return f"All {rows.compared:,} rows of the input embeddings moved"
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in list(rows.kinds.items())[:NAMED_AT_MOST])
    return f"{rows.moved:,} of {rows.compared:,} rows of the input embeddings moved ({kinds})"


def _ratio(value: float | None) -> str:
    if value is None:
        return "not defined"
    return shown(value) if value >= 0.095 else f"{value:.2g}".replace("0.", ".", 1) if value >= 1e-4 else f"{value:.1g}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else "all" if share == 1 else "nearly all"


def _numbers(count: int) -> str:
    return f"{count / 1e6:.1f} million numbers" if count >= 1e6 else f"{count:,} numbers"


def _count(names: Sequence[str], what: str) -> str:
    return f"{len(names)} {what}{'' if len(names) == 1 else 's'}"
