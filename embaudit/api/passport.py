"""``embaudit.passport`` and ``embaudit.verify``: a checkpoint's passport, and whether something is its function."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embaudit.comparisons.passport.file import read_passport, refuse_other_file, write_passport
from embaudit.comparisons.passport.passport import Passport
from embaudit.comparisons.passport.verify import PassportReport, verify_with
from embaudit.endpoint.recognise import is_address, open_endpoint
from embaudit.errors import UsageError
from embaudit.masking import without_credentials

if TYPE_CHECKING:
    from embaudit.request import AuditRequest


def passport(checkpoint: str | Path, out: str | Path | None = None, **settings: Any) -> Passport:
    """A checkpoint's passport: canary texts of every kind that servers get wrong, and their vectors.

    Args:
        checkpoint: packaged:NAME, a local folder or owner/name@revision on the hub.
        out: where to write it; an existing passport of the same checkpoint is replaced.
        settings: how the checkpoint is loaded: device, pooling, max_length, prompt, allow_pickle, trust_remote_code.

    Raises:
        EmbauditError: if the checkpoint cannot be loaded, or the file is something else or cannot be written.
    """
    from embaudit.request import AuditRequest

    return make(AuditRequest.of(checkpoint=str(checkpoint), **settings), None if out is None else Path(out))


def make(request: AuditRequest, out: Path | None) -> Passport:
    """The passport of what a request names."""
    from embaudit.checkpoint import load_checkpoint
    from embaudit.comparisons.passport.make import make_passport

    if out is not None:
        # Before a model is loaded, which takes longer.
        refuse_other_file(out)
    options = replace(request.load_options, dtype="float32")
    made = make_passport(load_checkpoint(request.checkpoint, options), options)
    if out is not None:
        write_passport(made, out)
    return made


def verify(
    passport: str | Path | Passport,
    other: str | Path,
    *,
    api: str | None = None,
    model: str | None = None,
    dtype: str = "float32",
    device: str = "auto",
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> PassportReport:
    """Whether an endpoint or a checkpoint is the function of a passport, and if not, on which kinds of text.

    The canary texts are sent to the endpoint, wherever it is.

    Args:
        passport: one, or its file.
        other: an endpoint's address, or a checkpoint, which is read with the settings of the passport.
        api: openai, tei or ollama; by default, recognised.
        model: its name at the endpoint, if that serves several.
        dtype, device, allow_pickle, trust_remote_code: how a checkpoint is loaded.

    Raises:
        EmbauditError: if the file is no passport, the endpoint does not answer, or the checkpoint cannot be loaded.
    """
    given = passport if isinstance(passport, Passport) else read_passport(Path(passport))
    name = str(other)
    if is_address(name):
        with open_endpoint(name, api, model) as endpoint:
            return verify_with(given, endpoint, without_credentials(name))
    if api is not None or model is not None:
        raise UsageError(f"{name} is a checkpoint, which has no API and no models.", next_step="Leave these out.")
    from embaudit.checkpoint import AskedPrompts, LoadOptions, load_checkpoint

    asked = given.settings
    options = LoadOptions(
        device=device,
        dtype=dtype,
        pooling=asked.pooling,
        max_length=asked.max_length,
        allow_pickle=allow_pickle,
        trust_remote_code=trust_remote_code,
        prompts=AskedPrompts(asked.prompt),
    )
    return verify_with(given, load_checkpoint(name, options), name)
