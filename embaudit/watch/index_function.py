"""The function that an index is held against, and the passport that is in force for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from embaudit.embedders.function import EmbeddingFunction
from embaudit.embedders.opened import CallOptions, is_checkpoint, is_endpoint, open_function
from embaudit.questions.passport.passport import Passport, read_passport
from embaudit.questions.passport.verify import verify_with
from embaudit.watch.served import id_of_passport, passport_of_endpoint
from embaudit.watch.watch_list import IndexEntry

PASSPORT_FILE = ".json"


@dataclass(frozen=True)
class ActivePassport:
    """A passport, and whether the function is still its own.

    Attributes:
        id: of the checkpoint, or of a passport's vectors if it has none.
        otherwise: what is different, as a sentence; empty if it is the same function.
    """

    path: Path
    id: str
    otherwise: str = ""


@dataclass(frozen=True)
class WatchedEmbedder:
    """A function as an entry of a watch list names it.

    Attributes:
        name: of the function; what a passport's file says, if that was named.
        load: opens it in another precision (``dtype:NAME``), or one of the entry's others.
    """

    name: str
    function: EmbeddingFunction
    load: Callable[[str], EmbeddingFunction]
    passport: ActivePassport | None = None


def open_held(entry: IndexEntry, reports: Path) -> WatchedEmbedder:
    """Open an entry's function.

    A checkpoint is its passport's by the id of its content. Whatever is asked has to give the passport's vectors: what
    it gave before is no proof of what it gives tonight.

    Args:
        reports: the folder with the passports of audits and of watched endpoints.

    Raises:
        EmbauditError: if it cannot be opened, gives no vectors, or its passport cannot be read.
    """
    name, options = entry.function, replace(entry.settings.load_options, dtype="float32")
    path, passport = None, None
    if Path(name).suffix == PASSPORT_FILE and Path(name).is_file():
        path = Path(name)
        passport = read_passport(path)
        name, said = passport.checkpoint.source, passport.settings
        prompt = options.prompts.text if options.prompts.text is not None else said.prompt
        options = replace(
            options,
            pooling=options.pooling or said.pooling,
            max_length=options.max_length or said.max_length,
            prompts=replace(options.prompts, text=prompt),
        )
    asked = CallOptions() if is_checkpoint(name) else CallOptions(entry.api, entry.model)

    def load(other: str) -> EmbeddingFunction:
        if other.startswith("dtype:"):
            return open_function(name, replace(options, dtype=other.removeprefix("dtype:")), asked)
        return open_function(other, options, asked if is_endpoint(other) else CallOptions())

    function = open_function(name, options, asked)
    if path is None:
        path = (
            reports / f"{function.identity}.passport.json"
            if function.checkpoint is not None
            else passport_of_endpoint(name, entry.api, entry.model, reports)
        )
        passport = read_passport(path) if path.is_file() else None
    held = WatchedEmbedder(name, function, load)
    return held if passport is None else replace(held, passport=_in_force(passport, path, function))


def _in_force(passport: Passport, path: Path, function: EmbeddingFunction) -> ActivePassport:
    found = ActivePassport(path, id_of_passport(passport))
    if function.checkpoint is not None and function.identity == passport.checkpoint.id:
        return found
    report = verify_with(passport, function)
    return replace(found, otherwise=report.line) if report.verdict == "another function" else found
