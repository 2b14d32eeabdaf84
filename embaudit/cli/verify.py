"""``embaudit verify``: is what is served the function of a passport?"""

from __future__ import annotations

from pathlib import Path

import click

from embaudit.cli.endpoints import other_options, say_that_texts_leave
from embaudit.cli.printed import Shown, ends_in_page
from embaudit.errors import EXIT_DONE, EXIT_TRIPPED, EXIT_USAGE


@click.command()
@click.argument("passport", type=click.Path(path_type=Path))
@other_options
@click.option(
    "--device", default="auto", show_default=True, help="Device of a checkpoint: auto, cpu, cuda, cuda:1, mps."
)
@click.option("--allow-pickle", is_flag=True, help="Read pickled weights, which can run arbitrary code.")
@click.option("--trust-remote-code", is_flag=True, help="Run model code shipped with the checkpoint.")
@ends_in_page
def verify(
    passport: Path,
    other: str,
    api: tuple[str, ...],
    model: tuple[str, ...],
    with_dtype: str,
    device: str,
    allow_pickle: bool,
    trust_remote_code: bool,
    yes: bool,
    shown: Shown,
) -> int:
    """Does OTHER give the vectors that PASSPORT holds, and if not, on which kinds of text?

    Asks for the passport's texts alone, an endpoint and a Python object also in batches. A key for the endpoint is read
    from EMBAUDIT_API_KEY. Exit code 0 if it is the same function, 1 if not, 2 if it could not be compared. For the
    reason of a difference: embaudit parity.
    """
    from embaudit.api.passport import verify as verified
    from embaudit.comparisons.passport.file import read_passport
    from embaudit.comparisons.passport.page import passport_page

    # Before anything is sent.
    given = read_passport(passport)
    say_that_texts_leave(
        [other],
        f"the {len(given.canaries)} made-up ones of the passport",
        "the passport's texts would leave this one",
        is_agreed=yes,
    )
    report = verified(
        given,
        other,
        api=api,
        model=model,
        dtype=with_dtype,
        device=device,
        allow_pickle=allow_pickle,
        trust_remote_code=trust_remote_code,
    )
    shown.show(passport_page(report), report)
    codes = {"the same function": EXIT_DONE, "another function": EXIT_TRIPPED}
    return codes.get(report.verdict, EXIT_USAGE)
