"""``embaudit verify``: is what is served the function of a passport?"""

from __future__ import annotations

from pathlib import Path

import click

from embaudit.cli.leaving import endpoint_options, say_that_texts_leave
from embaudit.cli.printed import show_report
from embaudit.errors import EXIT_DONE, EXIT_TRIPPED, EXIT_USAGE


@click.command()
@click.argument("passport", type=click.Path(path_type=Path))
@click.option(
    "--with",
    "other",
    required=True,
    metavar="OTHER",
    help="The address of an endpoint (http://localhost:8080), or a checkpoint.",
)
@endpoint_options
@click.option(
    "--with-dtype",
    type=click.Choice(("float32", "bfloat16", "float16")),
    default="float32",
    show_default=True,
    help="The precision of a checkpoint.",
)
@click.option(
    "--device", default="auto", show_default=True, help="Device of a checkpoint: auto, cpu, cuda, cuda:1, mps."
)
@click.option("--allow-pickle", is_flag=True, help="Read pickled weights, which can run arbitrary code.")
@click.option("--trust-remote-code", is_flag=True, help="Run model code shipped with the checkpoint.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Also write it as an HTML page.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print it as Markdown.")
def verify(
    passport: Path,
    other: str,
    api: str | None,
    model: str | None,
    with_dtype: str,
    device: str,
    allow_pickle: bool,
    trust_remote_code: bool,
    yes: bool,
    out: Path | None,
    as_json: bool,
    as_markdown: bool,
) -> int:
    """Does OTHER give the vectors that PASSPORT holds, and if not, on which kinds of text?

    Asks for the passport's texts alone, an endpoint also in batches, again, and in parallel. A key for the endpoint is
    read from EMBAUDIT_API_KEY. Exit code 0 if it is the same function, 1 if not, 2 if it could not be compared. For the
    reason of a difference: embaudit parity.
    """
    from embaudit.api.passport import verify as verified
    from embaudit.endpoint.recognise import is_address
    from embaudit.measures.passport.file import read_passport
    from embaudit.page.passport import passport_page

    # Before anything is sent.
    given = read_passport(passport)
    if is_address(other):
        say_that_texts_leave(
            other,
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
    show_report(passport_page(report), report.as_json() if as_json else None, out, as_markdown=as_markdown)
    codes = {"the same function": EXIT_DONE, "another function": EXIT_TRIPPED}
    return codes.get(report.verdict, EXIT_USAGE)
