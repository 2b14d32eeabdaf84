"""τ as given by the user: one for all, one per layer, or one per head."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TypeGuard

from embaudit.words.errors import UsageError

Row = tuple[float, ...]


@dataclass(frozen=True)
class Temperatures:
    """Positive numbers by which QKᵀ is divided, in addition to √d.

    Attributes:
        rows: (layers or 1, heads or 1).
        is_by_layer: whether each layer has its own row; otherwise a single row applies to all.
        is_by_head: whether each head has its own column; otherwise a single column applies to all.
    """

    rows: tuple[Row, ...]
    is_by_layer: bool = False
    is_by_head: bool = False

    def __post_init__(self) -> None:
        for tau in self.values:
            if not isfinite(tau) or tau <= 0:
                raise UsageError(
                    f"A temperature divides the logits and must be a number greater than 0; {tau:g} is not.",
                    next_step="Give one between 0.5 and 1; attention is sharper below 1.",
                )

    @classmethod
    def of(cls, tau: Temperatures | float | Iterable[float] | Iterable[Iterable[float]]) -> Temperatures:
        """From a number (all layers), a vector (layers,) or a table (layers, heads).

        Raises:
            UsageError: if it is none of these, or a value is not a finite number greater than 0.
        """
        if isinstance(tau, Temperatures):
            return tau
        if not _is_list(tau):
            return cls(((_number(tau),),))
        entries = list(tau)
        if entries and all(_is_list(entry) for entry in entries):
            rows = tuple(tuple(_number(one) for one in entry) for entry in entries if _is_list(entry))
            if len({len(row) for row in rows}) != 1 or not rows[0]:
                raise UsageError(
                    "Temperatures by layer and head need the same number of heads in every layer, and these differ: "
                    f"{', '.join(str(len(row)) for row in rows)}.",
                    next_step="Give every layer as many as it has heads.",
                )
            return cls(rows, is_by_layer=True, is_by_head=True)
        if not entries:
            raise UsageError("An empty list has no temperature.", next_step="Give one per layer, or one for all.")
        return cls(tuple((_number(one),) for one in entries), is_by_layer=True)

    @classmethod
    def per_head(cls, tau: Sequence[float]) -> Temperatures:
        """One per query head, the same in every layer: (heads,).

        Raises:
            UsageError: as ``of``.
        """
        return cls(cls.of([list(tau)]).rows, is_by_head=True)

    @property
    def values(self) -> Row:
        """All of them, layer by layer."""
        return tuple(tau for row in self.rows for tau in row)

    def table(self, layers: int, heads: int) -> tuple[Row, ...]:
        """τ of every layer and head: (layers, heads).

        Raises:
            UsageError: if the checkpoint has a different number of layers or heads.
        """
        if self.is_by_layer and len(self.rows) != layers:
            raise _wrong_length(len(self.rows), "layer", layers)
        if self.is_by_head and len(self.rows[0]) != heads:
            raise _wrong_length(len(self.rows[0]), "head", heads)
        rows = self.rows if self.is_by_layer else self.rows * layers
        return rows if self.is_by_head else tuple(row * heads for row in rows)

    def __str__(self) -> str:
        rows = [", ".join(map(_shortest, row)) for row in self.rows]
        rows = [f"[{row}]" for row in rows] if self.is_by_head else rows
        return f"{', '.join(rows)} (layer by layer)" if self.is_by_layer else rows[0]


def _shortest(tau: float) -> str:
    """All digits, which are needed to undo the scaling."""
    return repr(tau).removesuffix(".0")


def _is_list(value: object) -> TypeGuard[Iterable[object]]:
    # Zero-dimensional arrays and tensors have __iter__ but cannot be iterated over.
    return hasattr(value, "__iter__") and not isinstance(value, str | bytes | dict) and getattr(value, "ndim", 1) > 0


def _number(value: object) -> float:
    try:
        if isinstance(value, bool | str | bytes):
            raise TypeError
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError) as error:
        raise UsageError(
            f"{value!r} is not a temperature.",
            next_step="Give a number greater than 0, one per layer, or a table of layers and heads.",
        ) from error


def _wrong_length(given: int, what: str, needed: int) -> UsageError:
    return UsageError(
        f"There are temperatures for {given} {what}s, but the checkpoint has {needed}.",
        next_step=f"Give {needed}, or one for all.",
    )
