"""``embaudit verify``: is what is served the function of a passport?"""

from __future__ import annotations

from pathlib import Path

import click

from embaudit.cli.endpoints import EndpointOptions, asks_functions, other_options
from embaudit.cli.printed import OutputOptions, ends_in_page


@click.command()
@click.argument("passport", type=click.Path(path_type=Path))
@other_options
@asks_functions()
@click.option(
    "--device", default="auto", show_default=True, help="Device of a checkpoint: auto, cpu, cuda, cuda:1, mps."
)
@click.option("--allow-pickle", is_flag=True, help="Read pickled weights, which can run arbitrary code.")
@click.option("--trust-remote-code", is_flag=True, help="Run model code shipped with the checkpoint.")
@ends_in_page
def verify(
    passport: Path,
    other: str,
    asked: EndpointOptions,
    with_dtype: str,
    device: str,
    allow_pickle: bool,
    trust_remote_code: bool,
    shown: OutputOptions,
) -> int:
    """Does OTHER give the vectors that PASSPORT holds, and if not, on which kinds of text?

    Asks for the passport's texts alone, an endpoint and a Python object also in batches. A key for the endpoint is read
    from EMBAUDIT_API_KEY. Exit code 0 if it is the same function, 1 if not, 2 if it could not be compared. For the
    reason of a difference: embaudit parity.
    """
    from embaudit.api.passport import verify_as
    from embaudit.questions.passport.file import read_passport

    # Before anything is sent.
    given = read_passport(passport)
    asked.say_that_texts_leave(
        [other],
        f"the {len(given.canaries)} made-up ones of the passport",
        "the passport's texts would leave this one",
    )
    report = verify_as(
        given,
        other,
        asked.of(other)[0],
        dtype=with_dtype,
        device=device,
        allow_pickle=allow_pickle,
        trust_remote_code=trust_remote_code,
    )
    return shown.show(report)
