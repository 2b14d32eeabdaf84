"""``embaudit.passport`` and ``embaudit.verify``: a checkpoint's passport, and whether something is its function."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embaudit.embedders.opened import AS_IT_IS, CallOptions, Given, asked_of, name_of, open_function
from embaudit.questions.passport.file import read_passport, refuse_other_file, write_passport
from embaudit.questions.passport.passport import Passport
from embaudit.questions.passport.verify import PassportReport, verify_with

if TYPE_CHECKING:
    from embaudit.questions.audit import AuditRequest


def passport(
    checkpoint: Given,
    out: str | Path | None = None,
    *,
    api: str | None = None,
    model: str | None = None,
    **settings: Any,
) -> Passport:
    """A function's passport: canary texts of every kind that servers get wrong, and their vectors.

    Args:
        checkpoint: packaged:NAME, a local folder or owner/name@revision on the hub, an endpoint's address, or a
            Python object or its name (docs/functions.md).
        out: where to write it; an existing passport of the same checkpoint is replaced.
        api: openai, tei, ollama, azure, cohere, voyage, jina or gemini; by default, recognised.
        model: its name at the endpoint, if that serves several.
        settings: how the checkpoint is loaded: device, pooling, max_length, prompt, allow_pickle, trust_remote_code.

    Raises:
        EmbauditError: if the checkpoint cannot be loaded, or the file is something else or cannot be written.
    """
    from embaudit.questions.audit import AuditRequest

    return make(
        AuditRequest.of(checkpoint=name_of(checkpoint), **settings),
        None if out is None else Path(out),
        checkpoint,
        asked_of([checkpoint], api=api, model=model)[0],
    )


def make(
    request: AuditRequest, out: Path | None, function: Given | None = None, asked: CallOptions = AS_IT_IS
) -> Passport:
    """The passport of what a request names, or of a function that is there already."""
    from embaudit.questions.passport.make import make_passport

    if out is not None:
        # Before a model is loaded, which takes longer.
        refuse_other_file(out)
    options = replace(request.load_options, dtype="float32")
    with open_function(request.checkpoint if function is None else function, options, asked) as opened:
        made = make_passport(opened, options)
    if out is not None:
        write_passport(made, out)
    return made


def verify(
    passport: str | Path | Passport,
    other: Given,
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
        other: an endpoint's address, a Python object or its name, or a checkpoint, which is read with the settings of
            the passport.
        api: openai, tei, ollama, azure, cohere, voyage, jina or gemini; by default, recognised.
        model: its name at the endpoint, if that serves several.
        dtype, device, allow_pickle, trust_remote_code: how a checkpoint is loaded.

    Raises:
        EmbauditError: if the file is no passport, the endpoint does not answer, or the checkpoint cannot be loaded.
    """
    given = passport if isinstance(passport, Passport) else read_passport(Path(passport))
    return verify_as(
        given,
        other,
        asked_of([other], api=api, model=model)[0],
        dtype=dtype,
        device=device,
        allow_pickle=allow_pickle,
        trust_remote_code=trust_remote_code,
    )


def verify_as(passport: Passport, other: Given, asked: CallOptions, **loading: Any) -> PassportReport:
    """The same, asked in a way; a checkpoint is loaded with the settings of the passport."""
    from embaudit.checkpoint import AskedPrompts, LoadOptions

    own = passport.settings
    options = LoadOptions(pooling=own.pooling, max_length=own.max_length, prompts=AskedPrompts(own.prompt), **loading)
    with open_function(other, options, asked) as opened:
        return verify_with(passport, opened)
