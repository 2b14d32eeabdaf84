"""A figure with its 95 % interval: one kind, from where it is computed to the sentence or the cell where it is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

# A width below this share of the values is rounding.
ROUNDING = 1e-12


class Numbers(TypedDict):
    """A figure with its interval as keywords, and in JSON."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval, if it has one; it unpacks into ``value, low, high``.

    A figure that is exact, of everything and not of a sample, has both ends at the value.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any], name: str) -> Estimate:
        """The columns ``name``, ``name_low`` and ``name_high`` of a row."""
        return cls(row[name], row.get(f"{name}_low"), row.get(f"{name}_high"))

    @classmethod
    def around(cls, value: float, half: float | None) -> Estimate:
        """value ± half; no interval without a half-width."""
        return cls(value) if half is None else cls(value, value - half, value + half)

    @classmethod
    def holding(cls, value: float | None, interval: tuple[float | None, float | None] | None) -> Estimate:
        """With the interval if it holds the value, as percentiles of a biased bootstrap may not; rounding may move an
        end."""
        low, high = interval or (None, None)
        if value is None or low is None or high is None:
            return cls(value)
        slack = ROUNDING * max(abs(low), abs(high), abs(value))
        return cls(value, min(low, value), max(high, value)) if low - slack <= value <= high + slack else cls(value)

    @classmethod
    def reaching(cls, value: float, ends: tuple[float, float]) -> Estimate:
        """With an interval that is widened to hold the value."""
        return cls(value, min(ends[0], value), max(ends[1], value))

    def __iter__(self) -> Iterator[float | None]:
        return iter((self.value, self.low, self.high))

    def within(self, least: float, most: float) -> Estimate:
        """With ends that do not pass the ends of the scale."""
        if self.low is None or self.high is None:
            return self
        return Estimate(self.value, max(self.low, least), min(self.high, most))

    @property
    def known(self) -> float:
        """The value, where there always is one."""
        assert self.value is not None
        return self.value

    @property
    def lowest(self) -> float:
        """The lower end; without an interval the value."""
        return self.known if self.low is None else self.low

    @property
    def highest(self) -> float:
        return self.known if self.high is None else self.high

    @property
    def is_above_zero(self) -> bool:
        """Whether all of the interval is; false without one."""
        return self.low is not None and self.low > 0

    @property
    def is_below_zero(self) -> bool:
        return self.high is not None and self.high < 0

    def columns(self, name: str) -> dict[str, float | None]:
        """The cells of ``name``, ``name_low`` and ``name_high``."""
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}

    def as_json(self) -> Numbers:
        return {"value": self.value, "low": self.low, "high": self.high}

    def interval(self, form: str = ".2f") -> str:
        """`` [0.41, 0.45]``; empty without an interval."""
        return "" if self.low is None or self.high is None else f" [{self.low:{form}}, {self.high:{form}}]"

    def __format__(self, form: str) -> str:
        """``0.43 [0.41, 0.45]``, each number in the same form; a figure that is none is a dash."""
        return "–" if self.value is None else f"{self.value:{form}}{self.interval(form)}"

    def percent(self, digits: int = 0) -> str:
        """``43 % [41, 45]``."""
        if self.value is None:
            return "–"
        ends = Estimate(self.value, *(None if end is None else 100 * end for end in (self.low, self.high)))
        return f"{100 * self.value:.{digits}f} %{ends.interval(f'.{digits}f')}"


def all_columns(estimates: Mapping[str, Estimate]) -> dict[str, float | None]:
    """The cells of estimates by name."""
    return {column: value for name, estimate in estimates.items() for column, value in estimate.columns(name).items()}


def shown(number: float, *, signed: bool = False) -> str:
    """``.74`` and ``−.03``; signed ``+.19``. As figures between −1 and 1 are printed in papers."""
    sign = "−" if round(number, 2) < 0 else "+" if signed else ""
    return sign + f"{abs(number):.2f}".removeprefix("0")


def with_interval(estimate: Estimate, *, signed: bool = False) -> str:
    """``+.19 [.16, .22]``."""
    assert estimate.value is not None
    if estimate.low is None or estimate.high is None:
        return shown(estimate.value, signed=signed)
    return f"{shown(estimate.value, signed=signed)} [{shown(estimate.low)}, {shown(estimate.high)}]"
