"""A retrieval collection as two corpora: its documents, and the queries that have relevant documents.

Sources: a folder in BEIR's layout or LongEmbed's (qrels.jsonl), the same on the hub, a file of QMSum meetings, or the
    embedded sample. A query's label lists its relevant documents as ``place:grade``, where place is the index in the
    other corpus; and as ``place:own`` a document that is the query itself, which is never ranked for it.

A document is a query's own if both have the same id, as where queries are documents (ArguAna). This is the rule of
BEIR's evaluation, and of MTEB for such collections. One difference: a document that is judged relevant is ranked
whatever its id, since in many collections both sides are merely numbered from 1.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from embaudit.corpora.catalog import CorpusSpec, HubPart
from embaudit.corpora.draw import Corpus, Flaw, Text, content_id, keep_rows
from embaudit.corpora.fields import clean, number_of, text_of
from embaudit.corpora.folders import BEIR_NAMES, DOCUMENT_IDS, GRADES, QUERY_IDS, Judgement, beir_file, read_judgements
from embaudit.corpora.hub import locate
from embaudit.corpora.hub_reference import HUB, HubRef
from embaudit.corpora.openers import ByteSource, local_file
from embaudit.corpora.records import read_records
from embaudit.words.errors import CorpusError

DOCUMENTS = "retrieval"
QUERIES = "retrieval-queries"
SAMPLE = "sample"
SAMPLE_FOLDER = Path(__file__).parent / "sample"
# Files with judgements; only the test split if there is one.
QRELS = ("qrels/test.tsv", "qrels.tsv", "qrels.jsonl", "qrels/test.jsonl")

OWN = "own"

_DOCUMENT = CorpusSpec(DOCUMENTS, "texts", "documents to retrieve", "", (), joins_title=True)
_QUERY = CorpusSpec(QUERIES, "texts", "queries", "", (), text_fields=("query", "text", "question"))


@dataclass(frozen=True)
class JudgedCollection:
    """Documents, and queries whose ``label`` lists the relevant ones."""

    documents: Corpus
    queries: Corpus


@dataclass(frozen=True)
class _Collection:
    """The parts of a source, not yet matched with each other."""

    documents: Iterator[Text | Flaw]
    queries: Iterator[Text | Flaw]
    judgements: Iterator[Judgement | Flaw]
    source: str
    revision: str | None = None


def load_judged(source: str = SAMPLE) -> JudgedCollection:
    """Read a retrieval collection; duplicate documents and queries are merged.

    Raises:
        CorpusError: if it cannot be found or read, or no query has a relevant document.
    """
    found = _find(source)
    named: dict[str, str] = {}

    def documents() -> Iterator[Text | Flaw]:
        for row in found.documents:
            if isinstance(row, Text) and row.external_id is not None:
                named.setdefault(row.external_id, row.text)
            yield row

    kept = keep_rows(documents())
    texts = tuple(row for row in kept.rows if isinstance(row, Text))
    places = {text.text: place for place, text in enumerate(texts)}
    known = {name: places[text] for name, text in named.items() if text in places}
    asked = keep_rows(_queries(found, known))
    queries = tuple(row for row in asked.rows if isinstance(row, Text))
    if not queries:
        raise CorpusError(
            f"{found.source} has no relevant document for any query: {len(texts)} documents, no judged queries; "
            f"of documents, {kept.counts}; of queries and judgements, {asked.counts}.",
            next_step="Give a folder with corpus.jsonl, queries.jsonl, and qrels/test.tsv with scores above 0.",
        )
    return JudgedCollection(
        Corpus(content_id("texts", texts), DOCUMENTS, "texts", found.source, found.revision, kept.counts, texts, ()),
        Corpus(content_id("texts", queries), QUERIES, "texts", found.source, found.revision, asked.counts, queries, ()),
    )


def relevant_of(label: str) -> dict[int, float]:
    """The relevant documents in a query's label: place -> grade."""
    return {int(place): float(grade) for place, grade in _listed(label) if grade != OWN}


def own_of(label: str) -> frozenset[int]:
    """The documents in a query's label that are the query itself, by place."""
    return frozenset(int(place) for place, grade in _listed(label) if grade == OWN)


def label_of(relevant: Mapping[int, float], own: Collection[int] = ()) -> str:
    """The label that ``relevant_of`` and ``own_of`` parse."""
    grades = [f"{place}:{grade!r}" for place, grade in sorted(relevant.items())]
    return " ".join([*grades, *(f"{place}:{OWN}" for place in sorted(own))])


def _listed(label: str) -> list[list[str]]:
    return [one.split(":") for one in label.split()]


def _queries(found: _Collection, known: Mapping[str, int]) -> Iterator[Text | Flaw]:
    """Judged queries, merged if they have the same text; queries without relevant documents are left out."""
    relevant: dict[str, dict[int, float]] = {}
    for row in found.judgements:
        if isinstance(row, Flaw):
            yield row
        elif row[2] > 0 and row[1] not in known:
            yield Flaw("broken", f"document {row[1]} is judged relevant but does not exist")
        elif row[2] > 0:
            grades = relevant.setdefault(row[0], {})
            grades[known[row[1]]] = max(row[2], grades.get(known[row[1]], 0.0))
    asked: dict[str, Text] = {}
    grades_of: dict[str, dict[int, float]] = {}
    own: dict[str, set[int]] = {}
    for query in found.queries:
        if isinstance(query, Flaw):
            yield query
        elif query.external_id in relevant:
            asked.setdefault(query.text, query)
            if query.external_id in known:
                own.setdefault(query.text, set()).add(known[query.external_id])
            for place, grade in relevant[query.external_id].items():
                grades = grades_of.setdefault(query.text, {})
                grades[place] = max(grade, grades.get(place, 0.0))
    for text, query in asked.items():
        grades = grades_of[text]
        yield Text(text, query.external_id, None, label_of(grades, own.get(text, set()) - grades.keys()))


def _find(source: str) -> _Collection:
    if source == SAMPLE:
        return _folder(SAMPLE_FOLDER, SAMPLE)
    if source.startswith(f"{HUB}:"):
        return _on_hub(source)
    path = Path(source).expanduser()
    if path.is_dir():
        return _folder(path, str(path))
    if path.is_file():
        return _meetings(path)
    raise CorpusError(
        f"There is no file or folder {source!r} with documents, queries and judgements.",
        next_step="A source is 'sample', a folder in BEIR's layout, a file of QMSum meetings, or "
        "hub:owner/name/FOLDER@revision.",
    )


def _folder(folder: Path, shown: str) -> _Collection:
    files = [folder / name for name in QRELS if (folder / name).is_file()][:1]
    files = files or sorted((folder / "qrels").glob("*.tsv"))
    if not files:
        raise CorpusError(
            f"{folder} has no relevance judgements: none of {', '.join(QRELS)}.",
            next_step="Add qrels/test.tsv with lines query-id<TAB>corpus-id<TAB>score.",
        )
    return _Collection(
        _texts(local_file(beir_file(folder, "corpus")), _DOCUMENT),
        _texts(local_file(beir_file(folder, "queries")), _QUERY),
        (row for file in files for row in _judgements(local_file(file))),
        shown,
    )


def _on_hub(source: str) -> _Collection:
    """Three files of one hub repository, in its root or in the given folder (LongEmbed: qmsum)."""
    ref = HubRef.parse(source)
    if ref.columns or ref.config or ref.first is not None:
        raise CorpusError(
            f"{source!r} has columns, a configuration or a number of rows, but a collection is read as a whole.",
            next_step="Write hub:owner/name@revision, or hub:owner/name/FOLDER@revision.",
        )
    start = f"{ref.path.strip('/')}/" if ref.path else ""
    revision, opened = ref.revision, []
    for names in (BEIR_NAMES["corpus"], BEIR_NAMES["queries"], QRELS):
        wanted = tuple(f"{start}{name}{packed}" for name in names for packed in ("", ".gz"))
        opened.append(locate(HubPart(ref.repository, revision, wanted), DOCUMENTS))
        revision = opened[0].commit  # all three from the commit that the first was resolved to
    documents, queries, judgements = opened
    return _Collection(
        (row for file in documents.downloads() for row in _texts(file, _DOCUMENT)),
        (row for file in queries.downloads() for row in _texts(file, _QUERY)),
        (row for file in judgements.downloads() for row in _judgements(file)),
        str(replace(ref, revision=documents.commit)),
        documents.commit,
    )


def _texts(source: ByteSource, spec: CorpusSpec) -> Iterator[Text | Flaw]:
    for record in read_records(source, "texts"):
        yield record if isinstance(record, Flaw) else text_of(record, spec)


def _judgements(source: ByteSource) -> Iterator[Judgement | Flaw]:
    if source.suffix == ".jsonl":
        for record in read_records(source, "texts"):
            yield record if isinstance(record, Flaw) else _judgement_record(record)
        return
    yield from read_judgements(source)


def _judgement_record(record: Mapping[str, object]) -> Judgement | Flaw:
    """LongEmbed gives no grades: listed documents are relevant."""
    ids = [next((str(record[name]) for name in names if name in record), None) for names in (QUERY_IDS, DOCUMENT_IDS)]
    grade = next((record[name] for name in GRADES if name in record), 1.0)
    query, document = ids
    if query is None or document is None or not math.isfinite(number_of(grade)):
        return Flaw("broken", f"a judgement without query, document or score: {', '.join(record)}")
    return query, document, number_of(grade)


def _meetings(path: Path) -> _Collection:
    """QMSum: a meeting's turns form one document, to be found by its specific queries.

    General queries ("Summarize the whole meeting.") do not identify a meeting and are left out.
    """
    documents: list[Text | Flaw] = []
    queries: list[Text | Flaw] = []
    judgements: list[Judgement | Flaw] = []
    for number, record in enumerate(read_records(local_file(path), "texts")):
        if isinstance(record, Flaw):
            documents.append(record)
            continue
        turns, asked = record.get("meeting_transcripts"), record.get("specific_query_list")
        if not isinstance(turns, list) or not isinstance(asked, list):
            raise CorpusError(
                f"{path} contains no meetings: line {number + 1} has no meeting_transcripts and specific_query_list.",
                next_step="Give QMSum's jsonl, or a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv.",
            )
        spoken = [f"{turn['speaker']}: {turn['content']}" for turn in turns if _is_turn(turn)]
        documents.append(Text(clean("\n".join(spoken)), f"meeting-{number}"))
        for place, one in enumerate(asked):
            text = one.get("query") if isinstance(one, dict) else None
            if isinstance(text, str):
                queries.append(Text(clean(text), f"query-{number}-{place}"))
                judgements.append((f"query-{number}-{place}", f"meeting-{number}", 1.0))
    return _Collection(iter(documents), iter(queries), iter(judgements), str(path))


def _is_turn(turn: object) -> bool:
    return isinstance(turn, dict) and isinstance(turn.get("speaker"), str) and isinstance(turn.get("content"), str)
