"""``embaudit.check``: check a checkpoint from Python, in the middle of a training run too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from embaudit.checkpoint.loading import PROMPTS
from embaudit.checkpoint.modules import NoTransformer
from embaudit.corpora.golden import load_golden
from embaudit.corpora.judged import load_judged
from embaudit.corpora.load import load_corpus
from embaudit.embedders.kept import cost_line
from embaudit.embedders.opened import (
    AS_IT_IS,
    CallOptions,
    Given,
    ProgressCallback,
    asked_of,
    is_checkpoint,
    name_of,
    open_kept,
)
from embaudit.embedders.pipeline import is_pipeline, open_pipeline
from embaudit.measures.quality.material import (
    FEW,
    Material,
    MaterialLimits,
    golden_of,
    sample_material,
    user_material,
)
from embaudit.questions.audit import AuditRequest
from embaudit.questions.blackbox.quality import CallerPrompts
from embaudit.questions.check.check import CheckReport, not_loadable
from embaudit.questions.check.check import check as check_folder
from embaudit.questions.check.files_only import check_files
from embaudit.questions.check.served import check_served
from embaudit.words.errors import CheckpointError, UsageError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# How a checkpoint is loaded.
LOADING = ("device", "pooling", "max_length", "allow_pickle", "trust_remote_code")


def check(
    checkpoint: Given,
    *,
    base: str | Path | SentenceTransformer | None = None,
    api: str | None = None,
    model: str | None = None,
    pairs: Sequence[str | Path] = (),
    data: Sequence[str | Path] = (),
    golden: str | Path | None = None,
    corpus: str | Path | None = None,
    files_only: bool = False,
    **settings: Any,
) -> CheckReport:
    """Whether a checkpoint may be served: a verdict, findings and figures, in seconds and without a server.

    Args:
        checkpoint: packaged:NAME, a local folder, owner/name@revision on the hub, a loaded ``SentenceTransformer``,
            which is saved to a temporary folder, the address of an endpoint: texts are sent there, or a Python object
            that gives vectors (docs/functions.md).
        base: what the checkpoint was tuned from, or its previous revision: what changed, what it gained and lost.
        api: the endpoint's: openai, tei, ollama, azure, cohere, voyage, jina or gemini; by default, recognised.
        model: its name at the endpoint, if that serves several.
        pairs: files of scored pairs, a data set each; by default, the embedded sample.
        data: folders of judged queries in BEIR's layout; by default, the embedded sample.
        golden: a file of golden queries (docs/why.md) that should find texts of the corpus, by id or text.
        corpus: those texts: a file, a folder or a data set on the hub.
        files_only: only look at files, settings, tokenizer and weights, and run nothing: for a checkpoint of any size,
            in the time of reading it. The verdict is then never that nothing was found wrong.
        settings: how it is loaded: device, pooling, max_length, prompt, query_prompt, document_prompt, allow_pickle,
            trust_remote_code.

    Raises:
        EmbauditError: if a setting or a file of texts is wrong, or an endpoint does not answer. That a checkpoint
            cannot be loaded is a result.
    """
    if files_only:
        require_files_alone(base=base is not None, pairs=pairs, data=data, golden=golden)
    material = given_material(
        [Path(path) for path in pairs],
        [Path(path) for path in data],
        golden=None if golden is None else Path(golden),
        corpus=None if corpus is None else str(corpus),
    )
    with ExitStack() as stack:
        given = checkpoint
        if is_pipeline(checkpoint) and str(getattr(checkpoint, "backend", "torch")) == "torch":
            given = _folder(checkpoint, stack)
        beside = None if base is None else _folder(base, stack)
        request = AuditRequest.of(checkpoint=name_of(given), **settings)
        asked = asked_of([given], api=api, model=model)[0]
        found = run(request, material, beside, function=given, asked=asked, files_only=files_only)
    return replace(
        found,
        checkpoint=name_of(checkpoint) if found.kind in ("checkpoint", "pipeline") else found.checkpoint,
        base=None if base is None else name_of(base),
    )


def _folder(checkpoint: str | Path | SentenceTransformer, stack: ExitStack) -> str:
    """A reference that can be loaded: the temporary folder that a model in memory is saved to."""
    if isinstance(checkpoint, str | Path):
        return str(checkpoint)
    if not (hasattr(checkpoint, "save_pretrained") and hasattr(checkpoint, "encode")):
        raise UsageError(
            f"A checkpoint is a name, a folder or a loaded SentenceTransformer, not a {type(checkpoint).__name__}.",
            next_step="Save the model in sentence-transformers format and check that folder.",
        )
    folder = stack.enter_context(TemporaryDirectory())
    checkpoint.save_pretrained(folder, create_model_card=False)
    return folder


def given_material(
    pairs: Sequence[Path],
    data: Sequence[Path],
    limits: MaterialLimits = FEW,
    *,
    golden: Path | None = None,
    corpus: str | None = None,
) -> Material:
    """The user's texts; the embedded sample's for what is not given. Golden queries and their corpus come besides.

    Raises:
        CorpusError: if a file cannot be read.
        UsageError: if one of golden queries and corpus is given without the other, or they do not belong together.
    """
    sample = sample_material()
    if (golden is None) != (corpus is None):
        lacking, given_one = ("--corpus TEXTS", golden) if corpus is None else ("--golden FILE", corpus)
        raise UsageError(
            f"{given_one} alone asks nothing: golden queries and the texts that they should find are given together.",
            next_step=f"Give {lacking}, too.",
        )
    asked = () if golden is None or corpus is None else (golden_of(load_golden(golden, corpus)),)
    if not pairs and not data:
        return replace(sample, golden=asked)
    given = user_material(
        [load_corpus("sts", str(path)) for path in pairs], [load_judged(str(folder)) for folder in data], limits
    )
    return replace(
        given,
        golden=asked,
        pairs=given.pairs if pairs else sample.pairs,
        collections=given.collections if data else sample.collections,
    )


def run(
    request: AuditRequest,
    material: Material,
    base: str | None = None,
    *,
    function: Given | None = None,
    asked: CallOptions = AS_IT_IS,
    most_texts: int | None = None,
    say: Callable[[str], None] = lambda line: None,
    told: ProgressCallback | None = None,
    files_only: bool = False,
    keeps_what_ran: bool = False,
) -> CheckReport:
    """Check what a request names, against a base if there is one; what is no checkpoint is asked as its callers ask it.

    Args:
        function: in place of what the request names, one that is there already.
        asked: how it is asked, if it is no checkpoint.
        most_texts: of the material, at most; None for all.
        say: is given a line for whoever waits: before the first text is sent, and when something is known early.
        told: is told how much is done of what an endpoint is asked.
        keeps_what_ran: whether Ctrl-C ends in a report on what ran of a checkpoint's parts.
        files_only: run nothing, and look at a checkpoint's files alone.

    Raises:
        UsageError: if only files are to be looked at of what has none.
    """
    given = request.checkpoint if function is None else function
    if files_only:
        return _check_files(request, given, say)
    if is_checkpoint(given):
        try:
            return check_folder(
                request.checkpoint, request.load_options, material, base, say, keeps_what_ran=keeps_what_ran
            )
        except NoTransformer as refused:
            return _check_pipeline(request, material, base, refused)
    _require_as_it_is(request, base, LOADING)
    every, query, document = (_literal(name, getattr(request, name)) for name in PROMPTS)
    asking = CallerPrompts(query or every, document or every, every)
    if most_texts is not None:
        material = within(material, most_texts)
    judged = (*material.collections, *material.golden)
    with open_kept(given, request.load_options, asked, told) as opened:
        sent = [
            *(text for pairs in material.pairs for text in asking.texts([*pairs.firsts, *pairs.seconds])),
            *(text for some in judged for text in asking.queries(some.queries)),
            *(text for some in judged for text in asking.documents(some.documents)),
        ]
        say(cost_line(opened, sent, "and some hundred made-up and changed ones"))
        return check_served(opened, material, asking)


def require_files_alone(**given: object) -> None:
    """Refuse what would have to be compared by running something, where only files are looked at.

    Raises:
        UsageError: naming it.
    """
    named = " and ".join(name for name, value in given.items() if value)
    if named:
        raise UsageError(
            f"By files alone, nothing can be measured on {named}: the network would have to be run.",
            next_step=f"Leave out --files, or {named}.",
        )


def _check_files(request: AuditRequest, given: Given, say: Callable[[str], None]) -> CheckReport:
    """Look at files alone; refuse what has none."""
    if is_checkpoint(given):
        try:
            return check_files(request.checkpoint, request.load_options, say)
        except NoTransformer as refused:
            raise UsageError(
                f"Its files alone say little of {request.checkpoint}: {refused.happened}",
                next_step="Leave out --files: its vectors are checked.",
            ) from refused
    raise UsageError(
        f"{request.checkpoint} has no files that are seen here.",
        next_step="Leave out --files: its vectors are checked.",
    )


def within(material: Material, most: int) -> Material:
    """Its first pairs, and first queries and documents, that are no more texts than so many altogether."""
    sizes = [2 * len(pairs.scores) for pairs in material.pairs]
    sizes += [len(one.queries) + len(one.documents) for one in (*material.collections, *material.golden)]
    return material.part(min(1.0, most / max(1, sum(sizes))))


def _check_pipeline(request: AuditRequest, material: Material, base: str | None, refused: NoTransformer) -> CheckReport:
    """Check the vectors of a checkpoint that is no transformer; that nothing reads it is a result."""
    _require_as_it_is(request, base, ())
    try:
        function = open_pipeline(request.checkpoint, request.load_options, refused)
    except CheckpointError as error:
        return not_loadable(request.checkpoint, error)
    with function:
        return check_served(function, material)


def _require_as_it_is(request: AuditRequest, base: str | None, settings: Sequence[str]) -> None:
    """Refuse settings of how a checkpoint is loaded, which what is asked as it is does not take."""
    given = [name for name in settings if getattr(request, name) != AuditRequest.model_fields[name].default]
    if base is not None:
        given.append("base")
    if given:
        raise UsageError(
            f"{request.checkpoint} is asked as it is: {' and '.join(given)} cannot be set for it.",
            next_step="Leave it out, or check the checkpoint's folder.",
        )


def _literal(name: str, prompt: str | None) -> str:
    """A prompt's own text: the names of a checkpoint's prompts are in its files."""
    if prompt and prompt.isidentifier():
        raise UsageError(
            f"{name} = {prompt!r} names a prompt in a checkpoint's files, which nobody sees here.",
            next_step="Give the text that its callers put before theirs, such as 'query: '.",
        )
    return prompt or ""
