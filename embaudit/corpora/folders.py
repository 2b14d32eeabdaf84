"""Folders in BEIR's retrieval layout (corpus.jsonl, queries.jsonl, qrels/*.tsv), and folders of STS files.

The embedded sample is such a BEIR folder, with passages.jsonl and one qrels.tsv.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from embaudit.corpora.catalog import CORPORA, CorpusSpec
from embaudit.corpora.draw import BLANK, UNDECODABLE, Flaw, Text, TextPair
from embaudit.corpora.fields import number_of, text_of
from embaudit.corpora.openers import ByteSource, local_file, reading
from embaudit.corpora.records import SUFFIXES, read_records
from embaudit.words.errors import CorpusError

BEIR_NAMES = {"corpus": ("corpus.jsonl", "passages.jsonl"), "queries": ("queries.jsonl",)}
QUERY_IDS = ("query-id", "query_id", "qid")
DOCUMENT_IDS = ("corpus-id", "doc_id", "corpus_id", "docid")
GRADES = ("score", "relevance", "grade")
# Query, document and grade.
Judgement = tuple[str, str, float]
RELATED_COLUMN = {"hard_negative": "negative", "positive": "positive"}
NO_DATA_STEMS = ("readme", "license", "00-readme")


@dataclass(frozen=True)
class RetrievalFolder:
    """A retrieval task: queries, passages, and for each query the indices of its relevant passages.

    Attributes:
        own: for each query, the passage of the same id, which is the query itself and no answer to it.
        flaws: rows of its files that were dropped.
    """

    queries: tuple[str, ...]
    passages: tuple[str, ...]
    relevant: tuple[frozenset[int], ...]
    own: tuple[frozenset[int], ...]
    flaws: tuple[Flaw, ...]


def beir_file(folder: Path, part: str) -> Path:
    """The file of a BEIR folder with ``part`` (corpus or queries).

    Raises:
        CorpusError: if the folder has none.
    """
    names = [name + packed for name in BEIR_NAMES[part] for packed in ("", ".gz")]
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise CorpusError(
        f"{folder} is not a BEIR folder: it has no {names[0]} (nor {', '.join(names[1:])}).",
        next_step="Give a folder with corpus.jsonl, queries.jsonl and qrels/*.tsv, or a single file.",
    )


def beir_pairs(folder: Path, spec: CorpusSpec) -> Iterator[TextPair | Flaw]:
    """Query-passage pairs in the order of the qrels; score 0 is a hard negative, above 0 a positive.

    Judgements of the other relation, and of a query's own passage, are not rows of this corpus and are not counted.
    """
    judged = list(_judgements(folder, spec.relation))
    pairs = [row for row in judged if not isinstance(row, Flaw)]
    if not pairs:
        wanted = "0" if spec.relation == "hard_negative" else "above 0"
        raise CorpusError(
            f"The qrels of {folder} contain no judgements with score {wanted}, so there are no {spec.relation} pairs.",
            next_step=f"Give qrels with such scores, or rows of query and {RELATED_COLUMN[spec.relation]}.",
        )
    queries = _texts_by_id(beir_file(folder, "queries"), CORPORA["msmarco-queries"], {query for query, _ in pairs})
    passages = _texts_by_id(beir_file(folder, "corpus"), spec, {passage for _, passage in pairs})
    for row in judged:
        if isinstance(row, Flaw):
            yield row
        elif row[0] not in queries:
            yield Flaw("broken", f"query {row[0]} is judged but not in queries.jsonl")
        elif row[1] not in passages:
            yield Flaw("broken", f"passage {row[1]} is judged but not in corpus.jsonl")
        else:
            yield TextPair(queries[row[0]], passages[row[1]], None, spec.relation)


def read_retrieval(folder: Path) -> RetrievalFolder:
    """All passages of a BEIR folder and the queries with relevant passages, in file order.

    Raises:
        CorpusError: if a file is missing or unreadable, or no query has a relevant passage.
    """
    judged: dict[str, set[str]] = {}
    flaws: list[Flaw] = []
    for row in _judgements(folder, "positive"):
        if isinstance(row, Flaw):
            flaws.append(row)
        else:
            judged.setdefault(row[0], set()).add(row[1])
    queries = _texts_by_id(beir_file(folder, "queries"), CORPORA["msmarco-queries"], set(judged), flaws)
    passages = _texts_by_id(beir_file(folder, "corpus"), CORPORA["msmarco"], None, flaws)
    places = {name: place for place, name in enumerate(passages)}
    asked = [
        (text, known, frozenset({places[query]} if query in places else ()) - known)
        for query, text in queries.items()
        if text and (known := frozenset(places[name] for name in judged[query] if name in places))
    ]
    if not asked:
        raise CorpusError(
            f"The qrels of {folder} list no relevant passage of corpus.jsonl for any query of queries.jsonl.",
            next_step="Give a folder whose qrels contain judgements above 0.",
        )
    texts, known_relevant, own = zip(*asked, strict=True)
    return RetrievalFolder(tuple(texts), tuple(passages.values()), tuple(known_relevant), tuple(own), tuple(flaws))


def _judgements(folder: Path, relation: str) -> Iterator[tuple[str, str] | Flaw]:
    files = sorted((folder / "qrels").glob("*.tsv")) or [folder / "qrels.tsv"]
    if not files[0].is_file():
        raise CorpusError(
            f"{folder} has no relevance judgements: neither qrels/*.tsv nor qrels.tsv.",
            next_step="Add qrels/test.tsv with lines query-id<TAB>corpus-id<TAB>score.",
        )
    for path in files:
        for row in read_judgements(local_file(path)):
            if isinstance(row, Flaw):
                yield row
            elif row[2] > 0 if relation == "positive" else row[2] <= 0 and row[0] != row[1]:
                yield row[:2]


def read_judgements(source: ByteSource) -> Iterator[Judgement | Flaw]:
    """The lines of a qrels file in BEIR's or TREC's columns, or in those that its header names."""
    with reading(source) as stream:
        order: list[int] = []
        for number, line in enumerate(stream):
            if number == 0 and (order := _order_in(line)):
                continue
            row = judgement_of(line, order)
            # The first line may be a header of other names; any other unparsable line is a flaw.
            if not (isinstance(row, Flaw) and number == 0 and row.counted_as == "broken"):
                yield row


def _order_in(header: bytes) -> list[int]:
    """The places of query, passage and grade in a header; empty if it does not name them."""
    names = [name.strip().lower() for name in header.decode("utf-8", "replace").split("\t")]
    places = [
        next((names.index(name) for name in known if name in names), -1) for known in (QUERY_IDS, DOCUMENT_IDS, GRADES)
    ]
    return [] if -1 in places else places


def judgement_of(line: bytes, order: Sequence[int] = ()) -> Judgement | Flaw:
    """Query, passage and grade from a line of a qrels file.

    Args:
        order: their places among the columns; empty: BEIR's three columns, or TREC's four.
    """
    try:
        text = line.decode("utf-8").strip()
    except UnicodeDecodeError:
        return UNDECODABLE
    cells = text.split("\t") if "\t" in text else text.split()
    if not text:
        return BLANK
    try:
        # TREC's four columns: query, iteration, passage, grade.
        order = order or ((0, 2, 3) if len(cells) == 4 else range(len(cells)))
        query, passage, grade = (cells[place].strip() for place in order)
        if not math.isfinite(number_of(grade)):
            raise ValueError(grade)
        return query, passage, number_of(grade)
    except (ValueError, IndexError):
        return Flaw("broken", f"a judgement that is not query-id, corpus-id, score: {text[:80]}")


def _texts_by_id(
    path: Path, spec: CorpusSpec, wanted: set[str] | None = None, flaws: list[Flaw] | None = None
) -> dict[str, str]:
    """The texts of a file by id: all, or those ``wanted``; rows that cannot be read are added to ``flaws``."""
    found: dict[str, str] = {}
    for record in read_records(local_file(path), "texts"):
        row = record if isinstance(record, Flaw) else text_of(record, spec)
        if isinstance(row, Text) and not row.text:
            row = BLANK
        if isinstance(row, Flaw):
            if flaws is not None:
                flaws.append(row)
        elif row.external_id and row.external_id not in found and (wanted is None or row.external_id in wanted):
            found[row.external_id] = row.text
    return found


def data_set_name(file: Path, folder: Path) -> str:
    """The name of an STS file in its folder without the format: ``2012/MSRpar.test``."""
    inside = file.relative_to(folder).as_posix()
    return inside.removesuffix(".gz").removesuffix(local_file(file).suffix)


def sts_files(folder: Path) -> list[Path]:
    """Every data file below a folder of STS files, sorted by path, without readmes and licences.

    Each is a data set, with its own scale of scores.

    Raises:
        CorpusError: if there is none.
    """
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if local_file(path).suffix in SUFFIXES and not path.name.lower().startswith(NO_DATA_STEMS) and path.is_file()
    ]
    if not files:
        raise CorpusError(
            f"{folder} contains no STS files.",
            next_step=f"Expected files ending in {', '.join(SUFFIXES)}, at any depth.",
        )
    return files
