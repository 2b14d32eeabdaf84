"""Ingested corpora as staged files: their rows by content, which of them an audit read, and what a measure draws.

A checkpoint's own row, as a step.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from embaudit.checkpoint.card import describe_row
from embaudit.corpora.draw import Corpus, Draw, pair_text
from embaudit.corpora.golden import GOLDEN, load_golden_folder
from embaudit.corpora.judged import DOCUMENTS, load_judged
from embaudit.corpora.load import load_corpus
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, checkpoint_of, stage_rows
from embaudit.steps.staging.stage import is_staged, read_batches, read_rows, read_table, staged_path
from embaudit.steps.step import Outputs, step
from embaudit.steps.tables import CheckpointRow, CorpusRow, TextPairRow, TextRow
from embaudit.system.installed import content_key
from embaudit.words.errors import StorageError


def stage_source(name: str, source: str, staging: str, draw: Draw | None = None) -> list[StagedCorpus]:
    """Read and stage what a name stands for: a corpus; of a collection, the documents and then the queries.

    Args:
        draw: the rows to keep of a larger source; None: all. A retrieval collection, and that of golden queries, is
            kept whole.
    """
    if name in (DOCUMENTS, GOLDEN):
        judged = load_judged(source) if name == DOCUMENTS else load_golden_folder(source)
        return [stage_corpus(corpus, staging) for corpus in (judged.documents, judged.queries)]
    return [stage_corpus(load_corpus(name, source, draw=draw), staging)]


def stage_corpus(corpus: Corpus, staging: str) -> StagedCorpus:
    """Stage a corpus: its rows by content, and a record of where they came from."""
    kind, rows = (TextRow, corpus.texts) if corpus.kind == "texts" else (TextPairRow, corpus.pairs)
    table = kind.table.name
    path = staged_path(staging, "corpus", corpus.corpus_id, table)
    content = Staged(table=table, path=path, rows=len(rows))
    if not is_staged(path):
        numbered = ({"corpus_id": corpus.corpus_id, "position": i, **vars(row)} for i, row in enumerate(rows))
        content = stage_rows(staging, "corpus", corpus.corpus_id, kind, numbered)
    record = {
        "corpus_id": corpus.corpus_id,
        "name": corpus.name,
        "kind": corpus.kind,
        "source": corpus.source,
        "revision": corpus.revision,
        **asdict(corpus.counts),
    }
    return StagedCorpus(
        name=corpus.name,
        corpus_id=corpus.corpus_id,
        kind=corpus.kind,
        source=corpus.source,
        rows=len(rows),
        report=str(corpus.counts),
        files=(_stage_record(staging, record), content),
    )


def _stage_record(staging: str, record: dict[str, Any]) -> Staged:
    """Stage where a corpus came from, what was dropped, and when it was first ingested like this."""
    # The same content can come under two names or from two files.
    name = f"corpus-{record['name']}"
    path = staged_path(staging, "corpus", record["corpus_id"], name)
    if is_staged(path):
        with contextlib.suppress(StorageError):
            (known,) = read_rows([path])
            if known == {**record, "ingested": known["ingested"]}:
                return Staged(table=CorpusRow.table.name, path=path, rows=1)
    row = {**record, "ingested": datetime.now(UTC)}
    return stage_rows(staging, "corpus", record["corpus_id"], CorpusRow, [row], file_name=name)


def rows_read(corpus: StagedCorpus, draws: Sequence[Draw], staging: str) -> list[Staged]:
    """A corpus as an audit publishes it: its record, and the texts or pairs that at least one measure drew.

    Args:
        draws: the measures' draws; if empty, all rows.
    """
    record, content = corpus.files
    if not draws or any(draw.rows >= corpus.rows for draw in draws):
        return [record, content]
    drawn = drawn_texts if corpus.kind == "texts" else drawn_pairs
    places = sorted({place for draw in draws for place in drawn(corpus.content_path, draw).places})
    kind = TextRow if corpus.kind == "texts" else TextPairRow
    key = content_key(corpus=corpus.corpus_id, places=places)
    path = staged_path(staging, "corpus", key, content.table)
    if is_staged(path):
        return [record, Staged(table=content.table, path=path, rows=len(places))]
    rows = read_table(corpus.content_path).take(places).to_pylist()
    return [record, stage_rows(staging, "corpus", key, kind, rows)]


def some_texts(corpus: StagedCorpus, most: int) -> list[str]:
    """Texts of up to ``most`` rows, both of a pair, evenly over the first batch of rows."""
    columns = ["text"] if corpus.kind == "texts" else ["first", "second"]
    batch = next(read_batches(corpus.content_path, columns), None)
    if batch is None or not batch.num_rows:
        return []
    places = np.linspace(0, batch.num_rows - 1, min(most, batch.num_rows)).astype(int)
    return [text for column in batch.take(places).columns for text in column.to_pylist()]


@dataclass(frozen=True)
class DrawnTexts:
    """The texts drawn from a corpus, in its order.

    Attributes:
        places: indices of the texts in the corpus, ``position`` in its tables.
    """

    places: list[int]
    texts: list[str]
    labels: list[str | None]


def drawn_texts(corpus_path: str, draw: Draw) -> DrawnTexts:
    """Read the drawn texts of a staged corpus."""
    rows = read_table(corpus_path, ["text", "label"])
    texts, labels = rows.column("text").to_pylist(), rows.column("label").to_pylist()
    places = draw.places(texts)
    return DrawnTexts(places, [texts[place] for place in places], [labels[place] for place in places])


@dataclass(frozen=True)
class DrawnPairs:
    """The same for the pairs of a list."""

    places: list[int]
    pairs: list[tuple[str, str]]


def drawn_pairs(corpus_path: str, draw: Draw) -> DrawnPairs:
    """Read the drawn pairs of a staged list."""
    rows = read_table(corpus_path, ["first", "second"])
    pairs = list(zip(rows.column("first").to_pylist(), rows.column("second").to_pylist(), strict=True))
    places = draw.places([pair_text(*pair) for pair in pairs])
    return DrawnPairs(places, [pairs[place] for place in places])


@step("checkpoint", version=3, tables=(CheckpointRow,), name="describe checkpoint")
def describe_checkpoint(out: Outputs, spec: CheckpointSpec, source: str, reference: str) -> None:
    """The checkpoint's own row.

    Args:
        source: what the user calls it.
        reference: the same, pinned; only for the key: another commit with the same content is staged separately.
    """
    out.rows(CheckpointRow, [{**describe_row(checkpoint_of(spec)), "source": source}])
