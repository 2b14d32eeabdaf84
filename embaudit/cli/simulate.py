"""``embaudit simulate``: simulations cited in the docs, without a checkpoint or an audit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from embaudit.cli.query import print_result
from embaudit.measures.length.bound import SIGMAS, TOKENS
from embaudit.measures.length.bound import simulate as simulate_bound
from embaudit.warehouse.query import QueryResult


def _numbers(kind: type[int] | type[float], lowest: float) -> Callable[[Any], tuple[int, ...] | tuple[float, ...]]:
    """An option's type: comma-separated numbers, each at least ``lowest``."""

    def parse(value: Any) -> tuple[int, ...] | tuple[float, ...]:
        """Values of the right type are returned as they are."""
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(kind(part) for part in str(value).split(",") if part.strip())
        except ValueError as error:
            raise click.BadParameter(f"{value!r} is not a list of numbers.") from error
        if not numbers or not all(lowest <= number < float("inf") for number in numbers):
            raise click.BadParameter(f"{value!r}: expected numbers of at least {lowest:g}, separated by commas.")
        return numbers

    return parse


@click.group()
def simulate() -> None:
    """Repeat a simulation cited in the docs."""


@simulate.command()
@click.option(
    "--sigma-s",
    type=_numbers(float, 0),
    metavar="N,N,…",
    help="Standard deviations of the logits.  [default: 0.1 to 4]",
)
@click.option("--tokens", type=_numbers(int, 2), metavar="N,N,…", help="Numbers of tokens, n.  [default: 4 to 512]")
@click.option("--matrices", type=click.IntRange(min=1), default=20, show_default=True, help="Matrices per cell.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
def bound(
    sigma_s: tuple[float, ...] | None, tokens: tuple[int, ...] | None, matrices: int, seed: int, form: str
) -> None:
    """Test whether the published bound on σ_a holds under its own assumption, Gaussian logits.

    \b
    σ_a = ‖PA‖₂ of A = softmax(σ_s·G), G an n × n matrix of standard Gaussians, against
    √(n / (2√(1+e^{−2σ_s²})(n−1)^{3/2} + 1)) of arXiv 2410.24200.
    """
    cells = list(simulate_bound(sigma_s or SIGMAS, tokens or TOKENS, matrices=matrices, seed=seed))
    columns = ["sigma_s", "n", "matrices", "sigma_a", "sigma_a_low", "sigma_a_high", "bound", "holds"]
    rows = [tuple(_shown(getattr(cell, name), form) for name in columns) for cell in cells]
    print_result(QueryResult(columns, rows), form)
    failed = [cell for cell in cells if not cell.holds]
    where = f", all with σ_s ≥ {min(cell.sigma_s for cell in failed):g}" if failed else ""
    click.echo(f"The bound fails in {len(failed)} of {len(cells)} cells{where}.", err=form != "table")


def _shown(value: Any, form: str) -> Any:
    return round(value, 4) if form == "table" and isinstance(value, float) else value
