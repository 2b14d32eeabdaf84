"""What Python objects offer that give vectors: one row an interface, with how it is recognised and asked.

The first that an object offers is used. What a package's own class offers comes before what any callable does.

Imports what ``python:MODULE:NAME`` names, and makes the object of a class or a factory.

A user's own code runs here because they name it (docs/security.md).
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import FunctionType
from typing import Any

from embaudit.words.errors import EmbauditError, UsageError, did_you_mean, one_line

# What an object gives for some texts; ``rows`` makes vectors of it.
Way = Callable[[Any, list[str]], Any]


@dataclass(frozen=True)
class Interface:
    """What one package, or many, promise.

    Attributes:
        name: what people know it as.
        methods: that an object must have.
        document: how it is asked for documents.
        query: for queries; None if it takes all texts alike.
        text: for texts that are neither; by default, as for documents.
        is_offered: what else must be true of it.
    """

    name: str
    methods: tuple[str, ...]
    document: Way
    query: Way | None = None
    text: Way | None = None
    is_offered: Callable[[Any], bool] = field(default=lambda given: True)


def has(given: Any, *methods: str) -> bool:
    """Whether an object has these methods; a stranger's may raise when it is asked."""
    try:
        return all(callable(getattr(given, name, None)) for name in methods)
    except Exception:
        return False


def parameters(given: Any) -> list[inspect.Parameter] | None:
    """Of a callable; None if nobody knows."""
    try:
        return list(inspect.signature(given).parameters.values())
    except (TypeError, ValueError):
        return None


def _takes(method: str, name: str) -> Callable[[Any], bool]:
    """Whether a method has a parameter of that name."""
    return lambda given: any(one.name == name for one in parameters(getattr(given, method)) or ())


def _each(method: str) -> Way:
    """Asked for one text at a time."""
    return lambda given, texts: [getattr(given, method)(text) for text in texts]


def _all(method: str) -> Way:
    return lambda given, texts: getattr(given, method)(texts)


def _listed(method: str) -> Way:
    """Of a generator a text, or one for all, as fastembed gives."""
    return lambda given, texts: [row for text in texts for row in islice(iter(getattr(given, method)(text)), 2)]


def _haystack_documents(given: Any, texts: list[str]) -> Any:
    document = _class_beside(given, "Document", "haystack")
    found = given.run(documents=[document(content=text) for text in texts])
    return [one.embedding for one in found["documents"]]


def _class_beside(given: Any, name: str, package: str) -> Any:
    """The class that an object's own module, or a module of its bases, uses under a name."""
    for base in type(given).__mro__:
        found = getattr(sys.modules.get(base.__module__), name, None)
        if isinstance(found, type):
            return found
    from importlib import import_module

    return getattr(import_module(package), name)


def _encode_if_offered(given: Any, texts: list[str]) -> Any:
    return given.encode(texts) if has(given, "encode") else given.encode_document(texts)


def _is_instance(given: Any) -> bool:
    """Whether it is an object with ``__call__`` rather than a function."""
    return not inspect.isroutine(given) and not isinstance(given, FunctionType | type)


INTERFACES = (
    Interface(
        "LangChain's Embeddings", ("embed_documents", "embed_query"), _all("embed_documents"), _each("embed_query")
    ),
    Interface(
        "LlamaIndex's embedding",
        ("get_text_embedding_batch", "get_query_embedding"),
        _all("get_text_embedding_batch"),
        _each("get_query_embedding"),
    ),
    Interface("Haystack's document embedder", ("run",), _haystack_documents, is_offered=_takes("run", "documents")),
    Interface(
        "Haystack's text embedder",
        ("run",),
        lambda given, texts: [given.run(text=text)["embedding"] for text in texts],
        is_offered=_takes("run", "text"),
    ),
    Interface(
        "fastembed's TextEmbedding",
        ("embed", "query_embed", "passage_embed"),
        _all("passage_embed"),
        _listed("query_embed"),
        _all("embed"),
    ),
    Interface(
        "FlagEmbedding's model",
        ("encode_queries", "encode_corpus"),
        _all("encode_corpus"),
        _all("encode_queries"),
        lambda given, texts: given.encode(texts) if has(given, "encode") else given.encode_corpus(texts),
    ),
    Interface(
        "sentence-transformers' encode_query and encode_document",
        ("encode_query", "encode_document"),
        _all("encode_document"),
        _all("encode_query"),
        _encode_if_offered,
    ),
    # Before what may be an attribute of it: a model's ``encode`` puts no prompts.
    Interface(
        "Chroma's embedding function",
        ("__call__", "embed_query"),
        lambda given, texts: given(input=texts),
        lambda given, texts: given.embed_query(input=texts),
        is_offered=lambda given: _is_instance(given) and _takes("__call__", "input")(given),
    ),
    Interface("encode, as model2vec and sentence-transformers have it", ("encode",), _all("encode")),
    Interface(
        "spaCy's pipeline",
        ("pipe", "__call__"),
        lambda given, texts: [one.vector for one in given.pipe(texts)],
        is_offered=lambda given: hasattr(given, "vocab"),
    ),
    Interface(
        "Chroma's embedding function",
        ("__call__",),
        lambda given, texts: given(input=texts),
        is_offered=lambda given: _is_instance(given) and _takes("__call__", "input")(given),
    ),
    Interface("a callable", ("__call__",), lambda given, texts: given(texts)),
)
# Classes, by name, that give something else than one dense vector a text.
OTHERS = {
    **dict.fromkeys(("SparseEncoder", "SparseTextEmbedding"), "a sparse model: one number a vocabulary entry"),
    **dict.fromkeys(
        ("MultiVectorEncoder", "ColBERT", "LateInteractionTextEmbedding"), "a late-interaction model: a vector a token"
    ),
    **dict.fromkeys(("CrossEncoder", "TextCrossEncoder"), "a reranker: it scores pairs of texts"),
    "PreTrainedTokenizerBase": "a tokenizer: it gives ids of tokens",
    "PreTrainedModel": "a network without its tokenizer and pooling",
}
LOOKED_FOR = (
    "embed_documents and embed_query, get_text_embedding_batch, run, embed, encode, or a call with a list of texts"
)


def interface_of(given: Any) -> Interface | None:
    """The first that an object offers."""
    return next((one for one in INTERFACES if has(given, *one.methods) and one.is_offered(given)), None)


def other_kind(given: Any) -> str | None:
    """What an object gives in place of one dense vector a text, if its class is known for that."""
    return next((OTHERS[base.__name__] for base in type(given).__mro__ if base.__name__ in OTHERS), None)


PREFIX = "python:"
EXAMPLE = "It is python:MODULE:NAME, as in: from MODULE import NAME."
# What a stranger's code may raise; Ctrl-C is the user's, and passes.
RAISED = (Exception, SystemExit, asyncio.CancelledError)
# A class gives an object, a factory perhaps a class.
MADE_AT_MOST = 3


MEND = "It fails without embaudit, too: mend it there, and run the same command again."


class ObjectError(EmbauditError):
    """A Python object that cannot be had, or gives no vectors."""


def is_named_object(name: str) -> bool:
    """Whether a name is that of a Python object rather than of a checkpoint."""
    return name.startswith(PREFIX)


@contextmanager
def beside_results() -> Iterator[None]:
    """What a stranger's code prints goes to stderr: stdout is for results."""
    with redirect_stdout(sys.stderr):
        yield


def import_object(name: str) -> Any:
    """What ``python:MODULE:NAME`` names.

    Raises:
        UsageError: if there is no such module, or no such name in it.
        ObjectError: if the module cannot be imported.
    """
    module_name, _, attribute = name.removeprefix(PREFIX).partition(":")
    if not all(part.isidentifier() for part in (*module_name.split("."), *attribute.split("."))):
        raise UsageError(f"{name} names no Python object.", next_step=EXAMPLE)
    found = _module(module_name)
    for part in attribute.split("."):
        try:
            with beside_results():
                found = getattr(found, part)
        except AttributeError as error:
            raise UsageError(
                f"{getattr(found, '__name__', type(found).__name__)} has no {part}.",
                next_step=did_you_mean(part, [one for one in dir(found) if not one.startswith("_")]) + EXAMPLE,
            ) from error
        except RAISED as error:
            raise ObjectError(f"{name} cannot be had: {raised(error)}", next_step=MEND) from error
    return found


def _module(name: str) -> Any:
    here = str(Path.cwd())
    # First, so that it is found as Python itself finds it; last afterwards, for what it imports later: a file here must
    # not take the place of a package that embaudit imports.
    sys.path.insert(0, here)
    try:
        with beside_results():
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            near = did_you_mean(name, [path.stem for path in Path(here).glob("*.py")])
            raise UsageError(
                f"There is no Python module {name}: neither in {here} nor among the installed packages.",
                next_step=near + EXAMPLE,
            ) from error
        raise ObjectError(
            f"The module {name} cannot be imported: it needs {error.name}, which is not installed.",
            next_step="Install it beside embaudit.",
        ) from error
    except SyntaxError as error:
        raise ObjectError(
            f"The module {name} cannot be imported: {error.msg} ({Path(error.filename or name).name}, line "
            f"{error.lineno}).",
            next_step=MEND,
        ) from error
    except RAISED as error:
        raise ObjectError(f"The module {name} cannot be imported: {raised(error)}", next_step=MEND) from error
    finally:
        sys.path.remove(here)
        if here not in sys.path:
            sys.path.append(here)


def instance_of(given: Any, name: str) -> tuple[Any, str]:
    """The object itself, and how it was made of what was given: by calling a class or a factory without arguments.

    Raises:
        UsageError: if a class needs arguments.
        ObjectError: if it cannot be made.
    """
    made = ""
    for _ in range(MADE_AT_MOST):
        if not _makes_one(given):
            break
        needed = [one.name for one in parameters(given) or () if _is_needed(one)]
        if needed:
            raise UsageError(
                f"{name} is a class that needs {', '.join(needed)}.",
                next_step="Name an object of it, or a function without arguments that makes one.",
            )
        try:
            with beside_results():
                given = given()
        except RAISED as error:
            raise ObjectError(f"{name}{made}() gives no object: {raised(error)}", next_step=MEND) from error
        made += "()"
    return given, made


def _makes_one(given: Any) -> bool:
    """Whether this is a class, or a function that takes nothing."""
    if inspect.isclass(given):
        return True
    return inspect.isroutine(given) and parameters(given) == []


def _is_needed(one: inspect.Parameter) -> bool:
    return one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)


def raised(error: BaseException) -> str:
    """What was raised, and where in a stranger's code, as a sentence."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    is_theirs = last and Path(last[0].filename).parent != Path(__file__).parent
    where = f" ({Path(last[0].filename).name}, line {last[0].lineno})" if is_theirs else ""
    said = one_line(error)
    kind = type(error).__name__
    return f"{kind}{where}." if said == f"{kind}." else f"{kind}: {said.rstrip('.')}{where}."
