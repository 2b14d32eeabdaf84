"""``embaudit mitigate``: a checkpoint whose severe tokens have other input embeddings, written down."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from embaudit.cli.shown import visible
from embaudit.errors import UsageError
from embaudit.mitigation.rows import HOWS, How

if TYPE_CHECKING:
    from embaudit.checkpoint import Checkpoint


@click.command()
@click.argument("checkpoint")
@click.option(
    "--tokens",
    required=True,
    metavar="FILE|TOKEN,TOKEN,…",
    help="What `embaudit filter` wrote; or ids, strings of the vocabulary, or texts that are one token.",
)
@click.option(
    "--how",
    type=click.Choice(HOWS),
    default="unk",
    show_default=True,
    help="What their input embeddings become: the unknown token's, the mean of all others, or their own direction at "
    "an ordinary length.",
)
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="A new or empty folder.")
@click.option("--device", default="auto", show_default=True, help="Where the check runs: auto, cpu, cuda, cuda:1, mps.")
@click.option("--allow-pickle", is_flag=True, help="Read pickled weights, which can run any code.")
def mitigate(checkpoint: str, tokens: str, how: How, out: Path, device: str, allow_pickle: bool) -> None:
    """Write CHECKPOINT with other input embeddings for some tokens; sentence-transformers loads it unchanged.

    Texts without these tokens keep their vectors. Everything else is the source's, byte for byte.
    """
    from embaudit.checkpoint import LoadOptions, load_checkpoint
    from embaudit.mitigation.write import write_mitigated

    source = load_checkpoint(checkpoint, LoadOptions(device=device, allow_pickle=allow_pickle))
    severe = token_ids(source, tokens)
    made = write_mitigated(checkpoint, severe, how, out, device=device, allow_pickle=allow_pickle)
    before, after = made.norms
    replaced = "1 token has another input embedding"
    if len(made.tokens) > 1:
        replaced = f"{len(made.tokens):,} tokens have other input embeddings"
    for line in (
        f"{made.folder}: {replaced} ({how}; median norm {before:.2f}, now {after:.2f}); "
        "all else is byte for byte as it was, and the model card says so.",
        f"Check: vectors of {made.texts} texts without them, loaded from there: largest difference "
        f"{made.difference:.1e}.",
        f"Next: embaudit token {quote(str(made.folder))} {' '.join(map(str, made.tokens[:3]))}",
    ):
        click.echo(visible(line))


def token_ids(checkpoint: Checkpoint, tokens: str) -> set[int]:
    """The ids that a list of ``embaudit filter``, or words of a person's, name.

    Raises:
        UsageError: if the checkpoint has no such token, or the list is of another tokenizer.
    """
    from embaudit.measures.sticky.inspect import find_token
    from embaudit.screening.tokens import read_token_list

    if not Path(tokens).is_file():
        return {find_token(checkpoint, one.strip()) for one in tokens.split(",") if one.strip()}
    listed = read_token_list(Path(tokens))
    if listed.tokenizer_sha256 != checkpoint.identity.tokenizer_sha256:
        raise UsageError(
            f"The tokens in {tokens} are of another tokenizer than that of {checkpoint.resolved.ref}.",
            next_step="Make a list of this checkpoint: embaudit filter CHECKPOINT --out FILE",
        )
    return {one.token_id for one in listed.tokens}
