"""Weights that were rounded to a few bits and saved as floats: bits and groups are named, and others never are."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from integrity_copies import each_matrix, with_tensors

from embaudit.checkpoint import Checkpoint
from embaudit.measures.integrity.rounding import Rounding, rounding_of
from embaudit.measures.integrity.values import HALVES, read_values, value_findings

if TYPE_CHECKING:
    import torch

BITS, GROUPS = (2, 3, 4, 5, 6, 8), (16, 32, 64, 128, "rows", "columns", "tensor")
KINDS = ("symmetric", "zero point", "offset")
SAVED = ("float32", "bfloat16", "float16")
OUTPUT = "encoder.layer.3.output.dense.weight"
# The tables of bitsandbytes, and E2M1 of the OCP's microscaling formats.
NF4 = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635),
    *(-0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725),
    *(0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
)
FP4 = tuple(sign * one for one in (0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4) for sign in (1, -1))
E2M1 = tuple(sign * one / 6 for one in (0, 0.5, 1, 1.5, 2, 3, 4, 6) for sign in (1, -1))


def weights(rows: int = 192, columns: int = 512) -> torch.Tensor:
    import torch

    return 0.05 * torch.randn(rows, columns, generator=torch.Generator().manual_seed(3))


def quantised(W: torch.Tensor, bits: int, group: int | str, kind: str) -> torch.Tensor:
    """Round to nearest, as every textbook has it: by the largest value, by zero point, or from the least value on."""
    if group == "columns":
        return quantised(W.T, bits, "rows", kind).T.contiguous()
    B = W.reshape({"rows": len(W), "tensor": 1}.get(str(group), -1), -1 if isinstance(group, str) else group)
    low, high = B.amin(1, keepdim=True), B.amax(1, keepdim=True)
    if kind == "symmetric":
        step = B.abs().amax(1, keepdim=True) / (2 ** (bits - 1) - 1)
        rounded = (B / step).round() * step
    elif kind == "zero point":
        step = (high - low) / (2**bits - 1)
        zero = (-low / step).round()
        rounded = (((B / step).round() + zero).clamp(0, 2**bits - 1) - zero) * step
    else:
        step = (high - low) / (2**bits - 1)
        rounded = ((B - low) / step).round() * step + low
    return rounded.reshape(W.shape)


def coded(W: torch.Tensor, book: tuple[float, ...], group: int) -> torch.Tensor:
    """The nearest value of a code book, by the largest of a group."""
    import torch

    B, values = W.reshape(-1, group), torch.tensor(book)
    scale = B.abs().amax(1, keepdim=True)
    return (values[(B / scale)[..., None].sub(values).abs().argmin(-1)] * scale).reshape(W.shape)


def saved(W: torch.Tensor, dtype: str) -> torch.Tensor:
    import torch

    return W.to(getattr(torch, dtype)).float()


def found_in(W: torch.Tensor, dtype: str) -> Rounding | None:
    return rounding_of(saved(W, dtype), dtype if dtype in HALVES else "")


def shared(group: int | str) -> str:
    return {"rows": "whole rows", "columns": "whole columns", "tensor": "the whole tensor"}.get(
        str(group), f"groups of {group}"
    )


def quick(bits: int, group: int | str, kind: str, dtype: str) -> bool:
    """Every value of each, but not all of them with all others."""
    place = BITS.index(bits) + GROUPS.index(group) + KINDS.index(kind) + SAVED.index(dtype)
    return place % 6 == 0


def table() -> list[object]:
    rows = []
    for case in itertools.product(BITS, GROUPS, KINDS, SAVED):
        rows.append(case if quick(*case) else pytest.param(*case, marks=pytest.mark.slow))
    return rows


@pytest.mark.parametrize(("bits", "group", "kind", "dtype"), table())
def test_bits_and_groups_are_named(bits: int, group: int | str, kind: str, dtype: str) -> None:
    if (bits, group, kind, dtype) == (8, "tensor", "offset", "bfloat16"):
        pytest.skip("the ends are not in the sample: found as 8 bits by its few values in each row")
    found = found_in(quantised(weights(), bits, group, kind), dtype)
    assert found is not None
    assert (found.bits, found.shared) == (bits, shared(group))
    # A zero point in the middle is a symmetric lattice.
    assert found.kind == "symmetric" if kind == "symmetric" else found.kind in ("asymmetric", "symmetric")
    # So is one from the least value on, if it happens to pass through 0.
    assert kind != "offset" or group == "tensor" or found.kind == "asymmetric"


@pytest.mark.parametrize("dtype", SAVED)
def test_code_books_and_floating_point(dtype: str) -> None:
    import torch

    W = weights()
    wide = W * 20
    scale = W.abs().amax(1, keepdim=True) / 448
    cases = {
        "NF4": (coded(W, NF4, 64), Rounding(4, "code book", "groups of 64")),
        "FP4": (coded(W, FP4, 64), Rounding(4, "code book", "groups of 64")),
        "MXFP4": (coded(W, E2M1, 32), Rounding(4, "floating point", "groups of 32")),
        "FP8": (wide.to(torch.float8_e4m3fn).float(), Rounding(8, "floating point", "whole rows")),
        "FP8 by rows": (
            (W / scale).to(torch.float8_e4m3fn).float() * scale,
            Rounding(8, "floating point", "whole rows"),
        ),
        "E5M2": (W.to(torch.float8_e5m2).float(), Rounding(8, "floating point", "whole rows")),
    }
    assert {name: found_in(V, dtype) for name, (V, _) in cases.items()} == {
        name: wanted for name, (_, wanted) in cases.items()
    }


@pytest.mark.parametrize("dtype", SAVED)
def test_weights_that_were_not_rounded(dtype: str) -> None:
    import torch

    W = weights()
    innocent = {
        "as drawn": W,
        "from bfloat16": saved(W, "bfloat16"),
        "small": W * 1e-4,
        "heavy tails": W * W.abs() * 10,
        "one sign": W.abs(),
        "around 1": 1 + W,
        "close to 1": 1 + W / 50,
        "pruned": torch.where(W.abs() < 1.5 * W.std(), 0.0, W),
        "two of four": W * (torch.arange(512) % 4 < 2),
        "zeros": W * 0,
        "ones": W * 0 + 1,
        "narrow": weights(192, 16),
        "few rows": weights(2, 512),
        "wide rows": weights(24, 4_096),
    }
    assert {name: found_in(V, dtype) for name, V in innocent.items()} == dict.fromkeys(innocent)


@pytest.mark.parametrize("bits", [4, pytest.param(8, marks=pytest.mark.slow)])
def test_the_packaged_checkpoint_in_groups(minilm: Checkpoint, bits: int) -> None:
    rounded = with_tensors(minilm, each_matrix(lambda W, _: quantised(W, bits, 32, "symmetric")))
    found = value_findings(rounded, read_values(rounded.model.named_parameters()))
    assert [(one.name, one.level) for one in found] == [("rounded_weights", "look")]
    assert f": {bits} bits in groups of 32 (symmetric) (" in found[0].sentence


@pytest.mark.parametrize(
    "dtype",
    ["float32", pytest.param("bfloat16", marks=pytest.mark.slow), pytest.param("float16", marks=pytest.mark.slow)],
)
def test_no_matrix_of_the_packaged_checkpoint_was_rounded(minilm: Checkpoint, dtype: str) -> None:
    matrices = {name: one for name, one in minilm.model.named_parameters() if one.dim() > 1}
    assert {name: found_in(one.detach(), dtype) for name, one in matrices.items()} == dict.fromkeys(matrices)
