"""``embaudit apply-temperature``: write a checkpoint with another attention temperature."""

from __future__ import annotations

from pathlib import Path

import click

from embaudit.remedies.temperature import Temperatures
from embaudit.remedies.temperature.apply import apply_temperature as write
from embaudit.words.errors import UsageError


@click.command()
@click.argument("checkpoint")
@click.option("--tau", type=float, metavar="T", help="One temperature for all layers; below 1 sharpens attention.")
@click.option("--layer-tau", metavar="T,T,…", help="One temperature per layer, first to last.")
@click.option("--head-tau", metavar="T,T,…", help="One temperature per head, the same in every layer.")
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="New or empty folder.")
@click.option(
    "--divide-position-bias",
    is_flag=True,
    help="T5, UMT5 and MPNet: also divide the position bias, as the published code does.",
)
@click.option("--device", default="auto", show_default=True, help="Device for the check: auto, cpu, cuda, cuda:1, mps.")
@click.option("--allow-pickle", is_flag=True, help="Read pickled weights, which can run arbitrary code.")
def apply_temperature(
    checkpoint: str,
    tau: float | None,
    layer_tau: str | None,
    head_tau: str | None,
    out: Path,
    divide_position_bias: bool,
    device: str,
    allow_pickle: bool,
) -> None:
    """Write CHECKPOINT with attention softmax(QKᵀ/(τ√d)) built into its weights, loadable by sentence-transformers."""
    temperatures = _temperatures(tau, layer_tau, head_tau)
    made = write(
        checkpoint,
        temperatures,
        out,
        divide_position_bias=divide_position_bias,
        device=device,
        allow_pickle=allow_pickle,
    )
    click.echo(
        f"{made.folder}: τ = {temperatures} in {made.layers} layers; {made.support.reason}.\n"
        f"{len(made.divided)} tensors divided, {made.others} copied unchanged; the model card says so.\n"
        f"Check: vectors of {made.texts} texts, loaded from there, against {checkpoint} under τ: largest difference "
        f"{made.difference:.1e} ({made.dtype})."
    )
    click.echo(f"Next: embaudit audit {made.folder}")


def _temperatures(tau: float | None, by_layer: str | None, by_head: str | None) -> Temperatures:
    match tau, by_layer, by_head:
        case float(), None, None:
            return Temperatures.of(tau)
        case None, str(), None:
            return Temperatures.of(_numbers("layer", by_layer))
        case None, None, str():
            return Temperatures.per_head(_numbers("head", by_head))
    raise UsageError(
        "apply-temperature needs exactly one of --tau, --layer-tau and --head-tau.", next_step="Try --tau 0.8"
    )


def _numbers(part: str, given: str) -> list[float]:
    try:
        return [float(one) for one in given.split(",")]
    except ValueError as error:
        raise UsageError(
            f"--{part}-tau {given} is not a list of numbers.", next_step=f"Write one per {part}: 0.9,0.9,0.8"
        ) from error
