"""``embaudit screen``: flag texts with an unusual density of severe tokens."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from embaudit.checkpoint.weightless import load_tokenizer_alone
from embaudit.cli.options import warehouse_option, warehouse_path
from embaudit.declared.document import Column, Table, count
from embaudit.pages.text import console, print_part, print_table
from embaudit.remedies.screening import SEVERITIES, Severity, TokenList, read_token_list
from embaudit.remedies.screening.density import MIN_SCORE, encoder_of_tokens
from embaudit.remedies.screening.screen import ORDINARY, Outcome, Screen, Suspect
from embaudit.system.settings import Warehouse
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.migrate import require_newest
from embaudit.warehouse.named import LATEST, find_result
from embaudit.warehouse.query import severe_tokens
from embaudit.words.errors import EXIT_DONE, EXIT_TRIPPED, UsageError

FILE = click.Path(dir_okay=False, path_type=Path)
NAMED_TOKENS = 4


def _limit(value: str | tuple[float, bool]) -> tuple[float, bool]:
    """A number of texts or a share of them; gives the value and whether it is a share."""
    if isinstance(value, tuple):
        return value
    number = value.strip().removesuffix("%")
    is_share = number != value.strip()
    try:
        limit = float(number) / 100 if is_share else int(number)
    except ValueError:
        limit = -1
    if not 0 <= limit < float("inf"):
        raise click.BadParameter(f"{value!r} is neither a number of texts nor a share such as 0.1%.")
    return limit, is_share


@click.command()
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option("--tokens", type=FILE, metavar="FILE", help="Token list from embaudit filter.")
@click.option(
    "--audit",
    metavar="AUDIT|CHECKPOINT",
    help="Or the audit to take the tokens from.  [default: the newest with the sticky measure]",
)
@click.option(
    "--severity",
    type=click.Choice(SEVERITIES),
    help="Minimum severity of tokens.  [default: all of a list; moderate for an audit]",
)
@click.option(
    "--checkpoint",
    metavar="CHECKPOINT",
    help="Checkpoint with the tokenizer.  [default: the audited one]",
)
@click.option(
    "--ordinary", multiple=True, type=FILE, metavar="FILE", help="Ordinary texts to compare with. Repeatable.  "
    "[default: the embedded sample]",
)  # fmt: skip
@click.option(
    "--score",
    type=click.FloatRange(0, 1),
    default=MIN_SCORE,
    show_default=True,
    help="Minimum score of a flagged text.",
)
@click.option(
    "--max-length", type=click.IntRange(min=1), metavar="N", help="Tokens to read of each text.  [default: as served]"
)
@click.option(
    "--limit",
    type=_limit,
    metavar="N|P%",
    default="0",
    show_default=True,
    help="Exit with code 1 if more texts are flagged.",
)
@click.option("--show", type=click.IntRange(min=0), default=20, show_default=True, help="Flagged texts to list.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--trust-remote-code", is_flag=True, help="Run tokenizer code shipped with the checkpoint.")
@warehouse_option
def screen(
    files: tuple[Path, ...],
    tokens: Path | None,
    audit: str | None,
    severity: Severity | None,
    checkpoint: str | None,
    ordinary: tuple[Path, ...],
    score: float,
    max_length: int | None,
    limit: tuple[float, bool],
    show: int,
    as_json: bool,
    trust_remote_code: bool,
    warehouse: Warehouse | None,
) -> int:
    """Flag texts in FILES with an unusual density of severe tokens; exit code 1 if there are any.

    FILES are txt (one text per line), csv, tsv, jsonl, json, Parquet or Arrow, text formats also with .gz. Files are
    streamed.
    """
    if tokens is not None and audit is not None:
        raise UsageError("--tokens and --audit both give the severe tokens.", next_step="Leave one of them out.")
    if tokens is not None:
        listed = read_token_list(tokens)
        listed = listed.at_least(severity) if severity else listed
    else:
        place = warehouse_path(warehouse)
        with open_reader(place) as connection:
            require_newest(connection, place)
            listed = severe_tokens(
                connection, find_result(connection, audit or LATEST, "sticky"), severity or "moderate"
            )
    screening = _screen_of(listed, checkpoint or listed.checkpoint, max_length, score, show, trust_remote_code)
    found = screening.screen(files, screening.ordinary_rate(ordinary or ORDINARY))
    amount, is_share = limit
    has_tripped = found.flagged > (amount * found.texts if is_share else amount)
    if as_json:
        said = {"limit": f"{100 * amount:g}%" if is_share else f"{amount:g}", "has_tripped": has_tripped}
        click.echo(json.dumps({**_as_json(listed, found), **said}, indent=1, allow_nan=False))
    else:
        _print(listed, found)
    return EXIT_TRIPPED if has_tripped else EXIT_DONE


def _screen_of(
    listed: TokenList, checkpoint: str, max_length: int | None, score: float, show: int, trust_remote_code: bool
) -> Screen:
    """Raises:
    UsageError: if no listed token can occur in a text, or the tokenizer is a different one."""
    if not listed.losses:
        none = f"{len(listed.tokens)} of them, and no text produces one" if listed.tokens else "no such token"
        raise UsageError(
            f"Nothing to look for: audit {listed.audit_id} of {listed.checkpoint} has {none} at least "
            f"{listed.severity}.",
            next_step="Lower the threshold: --severity weak. (Having no severe token is a good result.)",
        )
    lone = load_tokenizer_alone(checkpoint, trust_remote_code=trust_remote_code)
    if lone.sha256 != listed.tokenizer_sha256:
        raise UsageError(
            f"The tokens belong to a different tokenizer ({listed.tokenizer_sha256[:12]}…) than that of {checkpoint} "
            f"({lone.sha256[:12]}…).",
            next_step="Give the audited checkpoint with --checkpoint CHECKPOINT, or audit this one.",
        )
    encode = encoder_of_tokens(lone.tokenizer)
    around = lone.around + (len(encode([listed.prompt])[0]) if listed.prompt else 0)
    own = (max_length or listed.max_length) - around
    if own < 1:
        raise UsageError(
            f"--max-length {max_length} leaves no room for text: {around} tokens are added to every text.",
            next_step="Use a larger value.",
        )
    return Screen(encode, listed.losses, own, score, show, lone.tokenizer.truncation_side)


def _as_json(listed: TokenList, found: Outcome) -> dict[str, Any]:
    names = {one.token_id: one.token for one in listed.tokens}
    return {
        "checkpoint": listed.checkpoint,
        "checkpoint_id": listed.checkpoint_id,
        "audit_id": listed.audit_id,
        "severity": listed.severity,
        "severe_tokens": len(listed.losses),
        "unreachable": [one.token for one in listed.unreachable],
        "ordinary": {**asdict(found.ordinary), "rate_at_most": found.ordinary.most},
        "files": [
            {
                "file": file.name,
                "rows": file.rows.read,
                **{name: value for name, value in asdict(file.rows).items() if name != "read"},
                **{name: getattr(file, name) for name in ("without_tokens", "cut", "tokens", "with_severe")},
                "counts": {names[token_id]: times for token_id, times in file.counts.most_common()},
            }
            for file in found.files
        ],
        "texts": found.texts,
        "flagged": found.flagged,
        "suspects": [_suspect(one, names, found.texts) for one in found.suspects],
    }


def _suspect(one: Suspect, names: dict[int, str], texts: int) -> dict[str, Any]:
    return {
        **{name: getattr(one, name) for name in ("file", "row", "score", "severe", "read")},
        "log10_p": one.log10_corrected(texts),
        "tokens": {names[token_id]: times for token_id, times in _most_first(one)},
        "start": one.start,
    }


def _most_first(one: Suspect) -> list[tuple[int, int]]:
    return sorted(one.counts.items(), key=lambda item: (-item[1], item[0]))


def _print(listed: TokenList, found: Outcome) -> None:
    out = console()
    names = {one.token_id: one.token for one in listed.tokens}
    rate = found.ordinary
    print_part(
        f"{count(len(listed.losses), 'token')} of {listed.checkpoint} (audit {listed.audit_id}, at least "
        f"{listed.severity}){_left_out(listed)}. In ordinary text, at most {rate.most:.2%} of the tokens are severe "
        f"({rate.severe:,} of {rate.tokens:,}).",
        out,
    )
    for file in found.files:
        common = ", ".join(f"{names[one]!r} {times:,}" for one, times in file.counts.most_common(NAMED_TOKENS))
        print_part(
            f"{file.name}: {file.rows}; {count(file.with_severe, 'text')} with a severe token"
            f"{f' ({common})' if common else ''}"
            f"{f'; {file.without_tokens:,} without any token' if file.without_tokens else ''}"
            f"{f'; {file.cut:,} longer than the checkpoint reads: their ends were not checked' if file.cut else ''}.",
            out,
        )
    print_table(
        Table(
            (
                *(Column("row", ",d"), Column("score", ".3f"), Column("severe", ",d"), Column("of tokens", ",d")),
                *(Column("which"), Column("begins"), Column("file", is_detail=len(found.files) == 1)),
            ),
            [
                (
                    *(one.row, one.score, one.severe, one.read),
                    " ".join(f"{names[token_id]}×{times}" for token_id, times in _most_first(one)[:NAMED_TOKENS]),
                    *(one.start, one.file),
                )
                for one in found.suspects
            ],
            brief=len(found.suspects),
        ),
        out,
    )
    more = f", of which {len(found.suspects):,} are listed" if len(found.suspects) < found.flagged else ""
    print_part(
        f"{found.flagged:,} of {count(found.texts, 'text')} flagged ({found.flagged / found.texts:.2%}){more}.", out
    )


def _left_out(listed: TokenList) -> str:
    if not listed.unreachable:
        return ""
    named = ", ".join(repr(one.token) for one in listed.unreachable[:NAMED_TOKENS])
    more = ", …" if len(listed.unreachable) > NAMED_TOKENS else ""
    return f"; {len(listed.unreachable)} more ({named}{more}) left out: no text can produce them"
