"""``embaudit mitigate``: write a checkpoint with the embeddings of severe tokens replaced or the tokens removed.

``embaudit apply-temperature``: write a checkpoint with another attention temperature.
"""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from embaudit.remedies.mitigation import WAYS, Way
from embaudit.remedies.temperature import Temperatures
from embaudit.remedies.temperature.apply import apply_temperature as write
from embaudit.words.errors import UsageError
from embaudit.words.sentences import visible

if TYPE_CHECKING:
    from embaudit.checkpoint import Checkpoint
    from embaudit.remedies.mitigation.write import Mitigated


@click.command()
@click.argument("checkpoint")
@click.option(
    "--tokens",
    required=True,
    metavar="FILE|TOKEN,TOKEN,…",
    help="Output of `embaudit filter`; or token ids, vocabulary strings, or texts that are one token.",
)
@click.option(
    "--how",
    type=click.Choice(WAYS),
    default="unk",
    show_default=True,
    help="Replace their input embeddings with: unk, the unknown token's; mean, the mean of all others; scale, their "
    "own direction at an ordinary length. Or prune: the tokenizer no longer produces them.",
)
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="New or empty folder.")
@click.option("--device", default="auto", show_default=True, help="Device for the check: auto, cpu, cuda, cuda:1, mps.")
@click.option("--allow-pickle", is_flag=True, help="Read pickled weights, which can run arbitrary code.")
def mitigate(checkpoint: str, tokens: str, how: Way, out: Path, device: str, allow_pickle: bool) -> None:
    """Write CHECKPOINT with the input embeddings of some tokens replaced, or without these tokens.

    sentence-transformers can load it. Texts without these tokens keep their vectors; everything else is copied
    unchanged.
    """
    from embaudit.checkpoint import LoadOptions, load_checkpoint
    from embaudit.remedies.mitigation.write import write_mitigated

    source = load_checkpoint(checkpoint, LoadOptions(device=device, allow_pickle=allow_pickle))
    severe = token_ids(source, tokens)
    made = write_mitigated(checkpoint, severe, how, out, device=device, allow_pickle=allow_pickle)
    for line in (
        f"{made.folder}: {_change(made, how)}; everything else is copied unchanged, and the model card says so.",
        f"Check: vectors of {made.texts} texts without them, loaded from there: largest difference "
        f"{made.difference:.1e}.",
        f"Next: {_next(made)}",
    ):
        click.echo(visible(line))


def _change(made: Mitigated, how: Way) -> str:
    count = len(made.tokens)
    if made.norms is None:
        kept = f" ({len(made.kept):,} more cannot be removed)" if made.kept else ""
        return f"the tokenizer no longer produces {count:,} {'token' if count == 1 else 'tokens'}{kept}"
    before, after = made.norms
    replaced = f"{count:,} tokens have other input embeddings" if count > 1 else "1 token has another input embedding"
    return f"{replaced} ({how}; median norm {before:.2f}, now {after:.2f})"


def _next(made: Mitigated) -> str:
    # `token` inserts copies by id, which a pruned tokenizer never produces.
    folder = quote(str(made.folder))
    pruned = made.norms is None
    return f"embaudit audit {folder}" if pruned else f"embaudit token {folder} {' '.join(map(str, made.tokens[:3]))}"


def token_ids(checkpoint: Checkpoint, tokens: str) -> set[int]:
    """The token ids named in a list from ``embaudit filter`` or by the user.

    Raises:
        UsageError: if the checkpoint has no such token, or the list is for another tokenizer.
    """
    from embaudit.measures.sticky.inspect import find_token
    from embaudit.remedies.screening import read_token_list

    if not Path(tokens).is_file():
        return {find_token(checkpoint, one.strip()) for one in tokens.split(",") if one.strip()}
    listed = read_token_list(Path(tokens))
    if listed.tokenizer_sha256 != checkpoint.identity.tokenizer_sha256:
        raise UsageError(
            f"The tokens in {tokens} belong to a different tokenizer than that of {checkpoint.resolved.ref}.",
            next_step="Make a list for this checkpoint: embaudit filter CHECKPOINT --out FILE",
        )
    return {one.token_id for one in listed.tokens}


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
            f"--{part}-tau {given!r} is not a list of numbers.", next_step=f"Write one per {part}: 0.9,0.9,0.8"
        ) from error
