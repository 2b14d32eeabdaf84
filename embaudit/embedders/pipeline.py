"""A pipeline of sentence-transformers as it runs: a model in memory, or a folder that is no transformer checkpoint.

Static models, bags of words, routers, models of images and texts, ONNX and OpenVINO: one dense vector a text.
Its inside is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embaudit.checkpoint import LoadOptions, resolve
from embaudit.checkpoint.agreement import left_as_it_is
from embaudit.checkpoint.files import read_json
from embaudit.checkpoint.load import choose_device
from embaudit.checkpoint.model import quiet_transformers
from embaudit.checkpoint.prompts import AS_DECLARED, NO_PROMPTS, Prompts
from embaudit.checkpoint.reference import folder_id, weights_are_pickles
from embaudit.embedders.function import AS_SUCH, IN_ORDER, Answers, EmbeddingFunction, first_alike, similarity_named
from embaudit.embedders.object.carrier import rows_of
from embaudit.embedders.object.interfaces import RAISED, ObjectError, beside_results, other_kind, raised
from embaudit.embedders.parts import GONE, Unanswered, encode_in_parts
from embaudit.words.errors import CheckpointError, UsageError, one_line

if TYPE_CHECKING:
    from embaudit.checkpoint import TextKind

METHODS: dict[TextKind, str] = {"text": "encode", "query": "encode_query", "document": "encode_document"}
# Modules whose vectors are not one dense one a text, as parts of a class's name.
NOT_DENSE = ("MLMTransformer", "Splade", "Sparse", "MultiVector", "ColBERT", "LateInteraction")
OWN = "sentence_transformers."
# Suffixes of what torch and joblib write with pickle.
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib")


class PipelineFunction(EmbeddingFunction):
    """A ``SentenceTransformer``, asked by its own methods.

    Args:
        model: left as it is, in training mode if it was.
        prompts: what its callers put before texts of each role; those that it declares, it adds itself.
        identity: of its content, where that is known.

    Raises:
        CheckpointError: if it gives something else than one dense vector a text.
    """

    kind = "pipeline"
    takes_roles = True
    takes_many_at_once = False

    def __init__(self, model: Any, name: str, *, prompts: Prompts = NO_PROMPTS, identity: str = "") -> None:
        if other := other_kind(model):
            raise CheckpointError(
                f"{name} is {other}.", next_step="embaudit compares functions that give one dense vector a text."
            )
        self.name, self.prompts, self.identity, self._model = name, prompts, identity, model
        self.requests = 0
        self._modules = [type(module).__name__ for module in model]
        backend = str(getattr(model, "backend", "torch"))
        shown = " + ".join(self._modules) + ("" if backend == "torch" else f" in {backend}")
        self.interface = f"sentence-transformers: {shown}"
        self.why_closed = f"sentence-transformers runs it ({shown}), and gives vectors only"
        limit = model.max_seq_length
        self.limit = int(limit) if isinstance(limit, int | float) and 0 < limit < 1_000_000 else None
        self.similarity = similarity_named(str(model.similarity_fn_name or "cosine"))
        # A router, or a class of its own, may do anything with what it is told of a text's use.
        self._has_prompts_alone = all(
            type(part).__module__.startswith(OWN) and not hasattr(part, "sub_modules") for part in (model, *model)
        )
        routes = [module for module in model if hasattr(module, "sub_modules")]
        self.takes_plain_texts = all(getattr(module, "default_route", None) for module in routes)
        declared = model.prompts
        self.tells_roles_apart = (
            not self._has_prompts_alone
            or declared.get("query", "") != declared.get("document", "")
            or prompts.query != prompts.document
        )

    def encode(
        self, texts: Sequence[str], role: TextKind = "text", *, most: int | None = None, at_once: int = 1
    ) -> Answers:
        """Vectors of texts; a router that has no route for a text that is neither gives it a document's.

        Raises:
            ObjectError: if none of the first texts has one, nor a plain one.
        """
        method = METHODS["document" if role == "text" and not self.takes_plain_texts else role]
        prompt = getattr(self.prompts, role)

        def ask(some: list[str]) -> list[np.ndarray]:
            self.requests += 1
            given = [prompt + text for text in some]
            try:
                with beside_results(), left_as_it_is(self._model):
                    return rows_of(
                        getattr(self._model, method)(given, batch_size=len(given), show_progress_bar=False), len(given)
                    )
            except Unanswered:
                raise
            except RAISED as error:
                raise Unanswered(raised(error).rstrip(".")) from error

        answers = encode_in_parts(ask, texts, most or 32, 1, dimension=self.dimension, gone=partial(self._gone, role))
        self.dimension = self.dimension or answers.vectors.shape[1] or None
        return answers

    def alike(self, role: TextKind) -> TextKind:
        # Whether queries without a prompt of their own get the default one depends on the version.
        if not self._has_prompts_alone or self._model.default_prompt_name is not None:
            return role
        own = {"text": "", **{one: self._model.prompts.get(one) or "" for one in AS_SUCH}}
        return first_alike({one: (own[one], getattr(self.prompts, one)) for one in IN_ORDER}, role)

    @property
    def asked_as(self) -> str:
        return f"{super().asked_as} {self.prompts.as_json()}"

    def _gone(self, role: TextKind, failed: Unanswered) -> ObjectError:
        return ObjectError(
            f"{self.name} gives no vector of the first {GONE} {'queries' if role == 'query' else 'texts'}: {failed}.",
            next_step="Does SentenceTransformer.encode give vectors of them?",
        )


def is_pipeline(given: Any) -> bool:
    """Whether this is a model of sentence-transformers, in memory; nothing is imported to find out."""
    return any(
        base.__name__ in ("SentenceTransformer", "SparseEncoder", "MultiVectorEncoder")
        and base.__module__.split(".")[0] == "sentence_transformers"
        for base in type(given).__mro__
    )


def open_pipeline(reference: str, options: LoadOptions, refused: CheckpointError) -> PipelineFunction:
    """A checkpoint that embaudit's own loader refuses, by sentence-transformers.

    Args:
        refused: the loader's reason, raised where sentence-transformers does not read it either.

    Raises:
        CheckpointError: if it is not installed, cannot read it, would run code that nobody asked for, or gives
            something else than one dense vector a text.
    """
    from importlib.util import find_spec

    if find_spec("sentence_transformers") is None:
        raise CheckpointError(
            f"{refused.happened} sentence-transformers, which may run it as it is, is not installed.",
            next_step="pip install 'embaudit[sentence-transformers]'",
        ) from refused
    given = {"pooling": options.pooling, "max_length": options.max_length, "dtype": options.dtype}
    wrong = [name for name, value in given.items() if value not in (None, "auto", "float32")]
    wrong += ["a prompt"] if options.prompts != AS_DECLARED else []
    if wrong:
        raise UsageError(
            f"{refused.happened} sentence-transformers runs it as it is: {' and '.join(wrong)} cannot be set for it.",
            next_step="Leave it out.",
        )
    resolved = resolve(reference, allow_pickle=options.allow_pickle, trust_remote_code=options.trust_remote_code)
    _refuse_what_was_not_asked_for(resolved.folder, options, refused)
    device = choose_device(options.device)
    from sentence_transformers import SentenceTransformer

    try:
        with quiet_transformers(), beside_results():
            model = SentenceTransformer(
                str(resolved.folder),
                device=device,
                local_files_only=True,
                trust_remote_code=options.trust_remote_code,
            )
    except Exception as error:  # whatever a model of a stranger raises
        raise CheckpointError(
            f"{refused.happened} sentence-transformers does not read it either: {type(error).__name__}: "
            f"{one_line(error)}",
            next_step=refused.next_step,
        ) from error
    return PipelineFunction(model, reference, identity=folder_id(resolved.folder))


def _refuse_what_was_not_asked_for(folder: Path, options: LoadOptions, refused: CheckpointError) -> None:
    """Refuse models of another kind, classes from elsewhere, and weights that are pickles."""
    classes = list(_classes(folder))
    if any(part in name for name in classes for part in NOT_DENSE):
        raise refused
    if not options.trust_remote_code and not all(name.startswith(OWN) for name in classes):
        raise refused
    if options.allow_pickle:
        return
    for path in sorted(folder.rglob("*")):
        is_openvino = path.with_suffix(".xml").is_file()
        if path.suffix in PICKLES and not is_openvino and not any(path.parent.glob("*.safetensors")):
            raise weights_are_pickles(str(folder), path.relative_to(folder).as_posix())


def _classes(folder: Path) -> Iterator[str]:
    """Dotted names of the classes that sentence-transformers would import for a folder's modules."""
    for entry in read_json(folder / "modules.json"):
        yield str(entry["type"])
    for file in folder.rglob("router_config.json"):
        types = read_json(file).get("types", {})
        yield from map(str, types.values() if isinstance(types, dict) else types)
    for file in folder.glob("*/config.json"):
        settings = read_json(file)
        named = settings.get("tokenizer_class") if isinstance(settings, dict) else None
        # Without dots it is a class of transformers.
        if isinstance(named, str) and "." in named:
            yield named
