"""Defects of the weights: untrained, misplaced, rounded, noisy, or not finite."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from benchmarks.defects.copies import Copy, Tensors, seeded, tensors

# What BERT's config.json calls initializer_range.
INITIAL = 0.02
LAYERS = 6
# The id of "gold", which stands in the texts that harm is measured on.
GOLD = 2_751
ROWS = "embeddings.word_embeddings.weight"
ENCODER, LAST, MIDDLE = r"encoder\.", r"encoder\.layer\.5\.", r"encoder\.layer\.2\."
VALUE = "encoder.layer.2.attention.self.value"
OUTPUT = "encoder.layer.2.attention.output.dense"
WIDE = "encoder.layer.2.intermediate.dense"
FINAL_NORM = "encoder.layer.5.output.LayerNorm"
# What a finding that names the cause right has in its rule or its sentence.
UNTRAINED = r"untrained|initiali[sz]|random numbers|never trained"
# Where no property of the weights gives the cause away, it is enough to say what it does to the layers.
DAMAGED = r"lost_in_layer|no_better_than_words|stopped after|word overlap|noise"
NOT_FINITE = r"NaN|infinit|finite"
OUT_OF_RANGE = r"value_range|outlier|times as much|overflow|finite|infinit|NaN"
ROUNDED = r"round(ed|ing)|quanti[sz]|distinct values"
UNTRAINED_ROWS = r"embedding_rows|untrained_(rows|embeddings)|ordinary tokens|input embedding"
ZERO = r"constant_matrices|\bzeros?\b|one value"
SAME = r"equal_layers|the same matrices|identical"
ORDER = r"\border\b|lost_in_layer|stopped after"


def matching(found: Tensors, pattern: str) -> dict[str, torch.Tensor]:
    """The floating-point tensors whose names match from their start."""
    return {name: tensor for name, tensor in found.items() if re.match(pattern, name) and tensor.is_floating_point()}


def matrices(found: Tensors, pattern: str = "") -> list[torch.Tensor]:
    return [tensor for tensor in matching(found, pattern).values() if tensor.dim() == 2]


def untrained(pattern: str) -> Callable[[Tensors], None]:
    """As transformers initialises them: normal matrices, neutral gains, zero biases."""

    def change(found: Tensors) -> None:
        generator = seeded()
        for name, tensor in matching(found, pattern).items():
            if tensor.dim() == 2:
                tensor.normal_(0.0, INITIAL, generator=generator)
            else:
                tensor.fill_(float(name.endswith("LayerNorm.weight")))

    return change


def redrawn(pattern: str) -> Callable[[Tensors], None]:
    """Matrices random with the spread that each had; gains and biases are kept."""

    def change(found: Tensors) -> None:
        generator = seeded()
        for matrix in matrices(found, pattern):
            matrix.normal_(float(matrix.mean()), float(matrix.std()), generator=generator)

    return change


def arranged(order: Sequence[int]) -> Callable[[Tensors], Tensors]:
    """Layer i is what layer ``order[i]`` was."""

    def change(found: Tensors) -> Tensors:
        kept = {name: tensor for name, tensor in found.items() if not name.startswith("encoder.layer.")}
        for place, origin in enumerate(order):
            front = f"encoder.layer.{origin}."
            for name, tensor in found.items():
                if name.startswith(front):
                    kept[f"encoder.layer.{place}.{name.removeprefix(front)}"] = tensor.clone()
        return kept

    return change


def filled(pattern: str, value: float) -> Callable[[Tensors], None]:
    def change(found: Tensors) -> None:
        chosen = matching(found, pattern)
        if not chosen:
            raise KeyError(pattern)
        for tensor in chosen.values():
            tensor.fill_(value)

    return change


def scaled(factors: dict[str, float]) -> Callable[[Tensors], None]:
    """Multiply tensors by name."""

    def change(found: Tensors) -> None:
        for name, factor in factors.items():
            found[name].mul_(factor)

    return change


def set_at(name: str, place: tuple[int, ...], value: float) -> Callable[[Tensors], None]:
    def change(found: Tensors) -> None:
        found[name][place] = value

    return change


def flipped(name: str, place: tuple[int, int]) -> Callable[[Tensors], None]:
    """The top bit of one weight's exponent: what was below 2 is 2¹²⁸ times as large."""

    def change(found: Tensors) -> None:
        found[name].view(torch.int32)[place] ^= 1 << 30

    return change


def rounded(bits: int, *, by_row: bool) -> Callable[[Tensors], None]:
    """Symmetric rounding of every matrix to 2^bits − 1 levels, with one scale a matrix or a row."""

    def change(found: Tensors) -> None:
        levels = 2 ** (bits - 1) - 1
        for matrix in matrices(found):
            top = matrix.abs().amax(dim=1, keepdim=True) if by_row else matrix.abs().max()
            scale = top.clamp_min(1e-12) / levels
            matrix.copy_((matrix / scale).round() * scale)

    return change


def noisy(share: float) -> Callable[[Tensors], None]:
    """Normal noise on every matrix, of a share of its spread."""

    def change(found: Tensors) -> None:
        generator = seeded()
        for matrix in matrices(found):
            matrix.add_(torch.randn(matrix.shape, generator=generator), alpha=share * float(matrix.std()))

    return change


def rows_at_random(count: int, change_rows: Callable[[torch.Tensor, torch.Tensor], None]) -> Callable[[Tensors], None]:
    """Change so many rows of the input embeddings, but none of special tokens and unused entries (below 999)."""

    def change(found: Tensors) -> None:
        rows = found[ROWS]
        change_rows(rows, 999 + torch.randperm(len(rows) - 999, generator=seeded())[:count])

    return change


def random_rows(rows: torch.Tensor, chosen: torch.Tensor) -> None:
    rows[chosen] = torch.randn((len(chosen), rows.shape[1]), generator=seeded(1)) * INITIAL


def zero_rows(rows: torch.Tensor, chosen: torch.Tensor) -> None:
    rows[chosen] = 0.0


def mean_rows(rows: torch.Tensor, chosen: torch.Tensor) -> None:
    """All the mean of the table, as new tokens are often started."""
    rows[chosen] = rows.mean(dim=0)


def script_rows(script: str) -> Callable[[Path], None]:
    """The rows of every entry with a letter of a script random."""

    def apply(folder: Path) -> None:
        tokens = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
        chosen = [place for place, token in enumerate(tokens) if any(script in _name(letter) for letter in token)]
        tensors(lambda found: random_rows(found[ROWS], torch.tensor(chosen)))(folder)

    return apply


def _name(letter: str) -> str:
    return unicodedata.name(letter, "")


def offset(share: float) -> Callable[[Tensors], None]:
    """The same random vector added to every token's last state, ``share`` times as wide as the states are."""

    def change(found: Tensors) -> None:
        gain, bias = found[f"{FINAL_NORM}.weight"], found[f"{FINAL_NORM}.bias"]
        bias.add_(torch.randn(bias.shape, generator=seeded()) * share * float(gain.square().mean().sqrt()))

    return change


def shuffled_positions(found: Tensors) -> None:
    table = found["embeddings.position_embeddings.weight"]
    table.copy_(table[torch.randperm(len(table), generator=seeded())])


def wide_segments(found: Tensors) -> None:
    """The embedding of the first segment, which every token gets, random and twenty times as wide as words are."""
    table = found["embeddings.token_type_embeddings.weight"]
    table[0] = torch.randn(table.shape[1], generator=seeded()) * 20 * float(found[ROWS].std())


def transposed(pattern: str) -> Callable[[Tensors], None]:
    """Square matrices turned over, as a conversion between layouts of linear layers does."""

    def change(found: Tensors) -> None:
        for matrix in matrices(found, pattern):
            matrix.copy_(matrix.T.clone())

    return change


def exchanged(first: str, second: str) -> Callable[[Tensors], None]:
    """Two parts of every attention under each other's names."""

    def change(found: Tensors) -> None:
        for name in [name for name in found if f".{first}." in name]:
            other = name.replace(f".{first}.", f".{second}.")
            found[name], found[other] = found[other], found[name]

    return change


def _copy(name: str, change: Callable[[Tensors], Tensors | None], cause: str, strength: str = "") -> Copy:
    return Copy(name, "weights", tensors(change), cause, strength)


def _numbers(name: str, change: Callable[[Tensors], Tensors | None], cause: str, strength: str = "") -> Copy:
    return Copy(name, "numerics", tensors(change), cause, strength)


ATTENTION, FEED_FORWARD = rf"{MIDDLE}attention\.output\.dense", rf"{MIDDLE}output\.dense"
WEIGHTS_COPIES = (
    _copy("every block as initialised", untrained(""), UNTRAINED),
    _copy("every matrix random", redrawn(""), rf"{UNTRAINED}|{DAMAGED}", "with its own spread"),
    _copy("encoder as initialised", untrained(ENCODER), UNTRAINED),
    _copy("encoder random", redrawn(ENCODER), rf"{UNTRAINED}|{DAMAGED}", "with its own spread"),
    _copy("last layer as initialised", untrained(LAST), UNTRAINED),
    _copy("last layer random", redrawn(LAST), rf"{UNTRAINED}|{DAMAGED}", "with its own spread"),
    _copy("one middle layer as initialised", untrained(MIDDLE), UNTRAINED),
    _copy("one middle layer random", redrawn(MIDDLE), rf"{UNTRAINED}|{DAMAGED}", "with its own spread"),
    _copy("layers in another order", arranged([5, 4, 3, 2, 1, 0]), ORDER, "reversed"),
    _copy("layers in another order", arranged([0, 4, 2, 3, 1, 5]), ORDER, "second and fifth swapped"),
    _copy("layers in another order", arranged([0, 1, 3, 2, 4, 5]), ORDER, "two neighbours swapped"),
    _copy("layer copied", arranged([0, 1, 2, 3, 3, 5]), SAME, "over the next"),
    _copy("layer copied", arranged([5] * LAYERS), SAME, "over all others"),
    _copy("input embeddings as initialised", untrained(r"embeddings\."), UNTRAINED),
    _copy("input embeddings random", redrawn(ROWS), rf"{UNTRAINED}|{UNTRAINED_ROWS}", "with their own spread"),
    _copy("gains of LayerNorm reset", filled(r".*LayerNorm\.weight", 1.0), r"LayerNorm|\bgains?\b", "all"),
    _copy("gains of LayerNorm reset", filled(rf"{FINAL_NORM}\.weight", 1.0), r"LayerNorm|\bgains?\b", "the last"),
    _copy("attention of one layer zero", filled(ATTENTION, 0.0), ZERO),
    _copy("feed-forward of one layer zero", filled(FEED_FORWARD, 0.0), ZERO),
    _copy("queries of all layers zero", filled(r".*self\.query", 0.0), ZERO),
    _copy("attention transposed", transposed(r".*attention\.(self|output)"), rf"{DAMAGED}|transposed", "all layers"),
    _copy(
        "attention transposed", transposed(rf"{MIDDLE}attention\.(self|output)"), rf"{DAMAGED}|transposed", "one layer"
    ),
    _copy("queries and values exchanged", exchanged("query", "value"), DAMAGED),
    _copy("positions shuffled", shuffled_positions, r"position"),
    _copy("positions zero", filled(r"embeddings\.position_embeddings", 0.0), rf"position|{ZERO}"),
    _copy("segment embedding large", wide_segments, rf"segment|token_type|{OUT_OF_RANGE}"),
    _copy("rows random", rows_at_random(1_000, random_rows), UNTRAINED_ROWS, "1 000"),
    _copy("rows random", rows_at_random(10_000, random_rows), UNTRAINED_ROWS, "10 000"),
    _copy("rows zero", rows_at_random(3_000, zero_rows), UNTRAINED_ROWS, "3 000"),
    _copy("rows all the mean", rows_at_random(3_000, mean_rows), UNTRAINED_ROWS, "3 000"),
    Copy("rows of one script random", "weights", script_rows("CYRILLIC"), rf"{UNTRAINED_ROWS}|Cyrillic", "Cyrillic"),
    Copy("rows of one script random", "weights", script_rows("CJK"), rf"{UNTRAINED_ROWS}|Han|CJK|Chinese", "Han"),
    *(
        _copy("rounded", rounded(bits, by_row=by_row), ROUNDED, f"{bits} bits a {'row' if by_row else 'matrix'}")
        for bits in (4, 3, 2)
        for by_row in (True, False)
    ),
    *(
        Copy("noise", "training", tensors(noisy(share)), DAMAGED, f"{share} of the spread")
        for share in (0.1, 0.25, 0.5, 1.0)
    ),
    *(
        Copy(
            "constant offset in the output",
            "training",
            tensors(offset(share)),
            r"collapsed|high cosine|close to each other|offset|constant vector",
            f"{share} of the states",
        )
        for share in (0.2, 1.0, 5.0)
    ),
    _numbers("NaN", set_at(ROWS, (2_003, 7), float("nan")), NOT_FINITE, "in one row"),
    _numbers("NaN", set_at(f"{VALUE}.bias", (5,), float("nan")), NOT_FINITE, "in one bias"),
    _numbers("infinity", set_at(f"{WIDE}.weight", (100, 50), float("inf")), NOT_FINITE, "in one weight"),
    _numbers("a bit flipped", flipped(f"{WIDE}.weight", (100, 50)), OUT_OF_RANGE, "in a layer"),
    _numbers("a bit flipped", flipped(ROWS, (GOLD, 7)), OUT_OF_RANGE, "in the row of one word"),
    _numbers(
        "one layer's weights × 10 000",
        scaled({f"{WIDE}.weight": 1e4, f"{WIDE}.bias": 1e4}),
        OUT_OF_RANGE,
        "feed-forward",
    ),
    Copy(
        "activations beyond float16",
        "numerics",
        # The weights themselves stay below float16's 65 504.
        tensors(scaled({f"{VALUE}.weight": 1e5, f"{VALUE}.bias": 1e5, f"{OUTPUT}.weight": 1e-5})),
        r"float16|fp16|half|overflow",
        served_as="float16",
    ),
)
