"""What comes out of Elasticsearch and OpenSearch, and what is put in: files of documents with vectors in them.

Documents as their answers have them (``_id`` beside ``_source``): a line each, as elasticdump writes them, a list, or
in the answers of ``_search`` and ``_msearch``, of which a file may hold one or several.

What is put into them (``_bulk``): a line that says what to do, and one with the document.

A document that was cut into chunks (nested fields, ``semantic_text``) is a row for each chunk.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from embaudit.corpora.openers import local_file, reading
from embaudit.stores.columns import is_vector as may_be_vectors
from embaudit.stores.json import SUFFIXES, lines_of, whole_of
from embaudit.stores.nested import Record, flat, table_of_records
from embaudit.stores.pieces import is_vector, piece_vectors, pieces
from embaudit.stores.place import GZIP, ReadOptions, StorePlace
from embaudit.stores.store import LOOKED_AT, StoreKind, StoreTable
from embaudit.stores.written import BASE64, is_likely, of_base64
from embaudit.words.errors import CorpusError, UsageError

ID, SOURCE, FIELDS = "_id", "_source", "fields"
LONGEST = 4_096
HITS = re.compile(rb'"_source"\s*:\s*\{|"_shards"\s*:\s*\{.*"hits"\s*:\s*\{', re.DOTALL)
# Weights of words, as ELSER gives them: fewer numbers by name are a document's own fields.
FEWEST_WEIGHTS = 8
# A chunk's text, where the chunk does not have it itself.
CUT_OUT = "chunk"


def is_documents(place: StorePlace) -> bool:
    if place.suffix not in SUFFIXES or not place.head.lstrip().startswith((b"{", b"[", GZIP)):
        return False
    with reading(local_file(place.path)) as stream:
        return HITS.search(stream.read(LONGEST)) is not None


def open_documents(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A row for each document of answers and exports, or for each of its chunks."""
    source = local_file(place.path)
    whole = whole_of(source)

    def documents() -> Iterator[Record]:
        answers = lines_of(source) if whole is None else whole if isinstance(whole, list) else [whole]
        for one in answers:
            yield from documents_of(one)

    return _table(place, documents)


def documents_of(answer: Any) -> Iterator[Record]:
    """The documents of an answer, of several in one, or the one that it is."""
    if not isinstance(answer, Mapping):
        return
    hits = answer.get("hits")
    if isinstance(hits, Mapping) and isinstance(hits.get("hits"), list):
        for hit in hits["hits"]:
            yield from documents_of(hit)
    elif isinstance(answer.get("responses"), list):
        for one in answer["responses"]:
            yield from documents_of(one)
    elif isinstance(answer.get("response"), Mapping):
        yield from documents_of(answer["response"])
    elif SOURCE in answer or FIELDS in answer:
        # What else a hit has is the search's: its score, by what it was sorted, what was highlighted.
        found = answer.get(FIELDS)
        fields = {name: _only(one) for name, one in found.items()} if isinstance(found, Mapping) else {}
        yield {ID: answer.get(ID), SOURCE: answer.get(SOURCE) or {}, **({FIELDS: fields} if fields else {})}


def _only(value: Any) -> Any:
    """What is asked for as a field comes in a list, a vector excepted."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


ACTIONS = ("index", "create", "update", "delete")
TOLD = {
    *("_index", "_id", "_type", "_version", "_version_type", "_routing", "_retry_on_conflict", "_source", "routing"),
    *("pipeline", "require_alias", "require_data_stream", "retry_on_conflict", "version", "version_type", "if_seq_no"),
    *("if_primary_term", "dynamic_templates", "list_executed_pipelines", "op_type"),
}


def open_bulk(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A row for each document, or for each of its chunks; what is deleted has none."""

    def documents() -> Iterator[Record]:
        action: Record | None = None
        for number, line in enumerate(lines_of(local_file(place.path)), 1):
            if not line:
                continue
            if action is None:
                if not is_action(line):
                    raise CorpusError(
                        f"Line {number:,} of {place.shown} cannot be read: it should say what to do with the next one, "
                        "as the first line does.",
                        kept="Nothing was measured.",
                        next_step="Correct that line, or export the file again.",
                    )
                action = None if "delete" in line else line
                continue
            ((what, told),) = action.items()
            document: Any = line.get("doc", line.get("upsert", {})) if what == "update" else line
            yield {ID: (told or {}).get(ID), **document}
            action = None

    return _table(place, documents)


def is_action(line: Any) -> bool:
    """Whether a line says what to do with the next one."""
    if not isinstance(line, dict) or len(line) != 1:
        return False
    ((what, told),) = line.items()
    return what in ACTIONS and (told is None or (isinstance(told, dict) and set(told) <= TOLD))


def is_bulk(place: StorePlace) -> bool:
    if place.suffix not in SUFFIXES or not place.head.startswith((b"{", GZIP)):
        return False
    with reading(local_file(place.path)) as stream:
        first, second = stream.readline(LONGEST), stream.read(1)
    try:
        return second == b"{" and is_action(json.loads(first))
    except ValueError:
        return False


def _table(place: StorePlace, documents: Callable[[], Iterator[Record]]) -> StoreTable:
    """The documents, or their chunks where these have the vectors."""
    some = list(islice(documents(), LOOKED_AT))
    packed = {path for document in some for path, value in flat(document) if _of_packed(value) is not None}
    if packed:
        return table_of_records(place.shown, lambda: (_unpacked(one, packed) for one in documents()), id=ID)
    table = table_of_records(place.shown, documents, id=ID)
    of_documents = max((len(one) for document in some for _, one in _vectors(document)), default=0)
    inner = ((len(one), path) for document in some for path, one in piece_vectors(document))
    of_chunks, path = max(inner, default=(0, ""))
    if of_chunks <= of_documents:
        if some and not any(map(may_be_vectors, table.columns.values())):
            raise _no_vectors(place, some[0])
        return table

    def chunks() -> Iterator[Record]:
        for document in documents():
            yield from _rows(document, path)

    note = f"Each document is a row for each of its chunks ({path}): ids are the document's, and the chunk's number."
    table = table_of_records(place.shown, chunks, id=ID, notes=(note,))
    text = next((name for name in (f"{path}.text", f"{path}.{CUT_OUT}") if name in table.columns), "")
    return replace(table, text=text)


def _of_packed(value: Any) -> list[float] | None:
    """Float32 in base64 with the largest byte first, as clients of 9.3 and later put vectors in."""
    raw = of_base64(value) if isinstance(value, str) and BASE64.fullmatch(value) else None
    if not raw or len(raw) % 4:
        return None
    numbers = np.frombuffer(raw, ">f4").astype("<f4")
    is_packed = is_likely([numbers.tobytes()], "float32") and not is_likely([raw], "float32")
    return numbers.tolist() if is_packed else None


def _unpacked(document: Record, packed: set[str]) -> Record:
    return {path: _of_packed(value) if path in packed else value for path, value in flat(document)}


def _vectors(record: Record) -> Iterator[tuple[str, list[Any]]]:
    return ((path, value) for path, value in flat(record) if is_vector(value))


def _rows(document: Record, path: str) -> Iterator[Record]:
    """The chunks of a document, each beside its other fields; one without any is a row without a vector."""
    fields = dict(flat(document))
    chunks = fields.get(path) or [{}]
    for number, (chunk, row) in enumerate(zip(chunks, pieces(document, path), strict=True)):
        own = {} if (text := _cut_out(fields, path, chunk)) is None else {f"{path}.{CUT_OUT}": text}
        yield {**row, **own, ID: f"{document.get(ID)}[{number}]"}


def _cut_out(fields: Record, path: str, chunk: Record) -> str | None:
    """The text of a chunk that says only from where to where of a field it goes."""
    start, end = chunk.get("start_offset"), chunk.get("end_offset")
    field = path.rpartition(".chunks.")[2]
    whole = next((value for name, value in fields.items() if f".{name}".endswith(f".{field}")), None)
    return whole[start:end] if isinstance(whole, str) and isinstance(start, int) and isinstance(end, int) else None


def _no_vectors(place: StorePlace, document: Record) -> UsageError:
    """Says why a document may have none."""
    weights = Counter(path.rpartition(".")[0] for path, value in flat(document) if isinstance(value, float))
    sparse = next((path for path, count in weights.items() if count >= FEWEST_WEIGHTS), "")
    if sparse:
        return UsageError(
            f"{place.shown} holds documents with weights of words ({sparse}), and no vectors.",
            next_step="Export an index that has a field of dense vectors.",
        )
    return UsageError(
        f"{place.shown} holds documents of Elasticsearch or OpenSearch, and no vectors: from Elasticsearch 9.2 on, "
        "answers leave them out unless they are asked for.",
        next_step='Export them again with "_source": {"exclude_vectors": false} in the search; with elasticdump: '
        """--searchBody='{"query": {"match_all": {}}, "_source": {"exclude_vectors": false}}'""",
    )


KINDS = (
    StoreKind(
        name="Elasticsearch's bulk",
        recognises=is_bulk,
        open=open_bulk,
        looks="lines for Elasticsearch's or OpenSearch's _bulk (.ndjson)",
        takes_gzip=True,
        tried="the documented form",
    ),
    StoreKind(
        name="Elasticsearch's documents",
        recognises=is_documents,
        open=open_documents,
        looks="documents out of Elasticsearch or OpenSearch: elasticdump's lines, answers of _search (.json, .ndjson)",
        takes_gzip=True,
        tried="the documented form",
    ),
)
