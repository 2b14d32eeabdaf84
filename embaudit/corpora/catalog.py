"""The named corpora and their sources.

Revisions are commits of the hub repositories as pinned in the task metadata of embeddings-benchmark/mteb, or taken from
the repository's history.

Hard negatives mined from a BEIR folder: the source ``mined:bm25:FOLDER`` or ``mined:checkpoint:FOLDER``.

``embaudit.measures.socm.lengths``, run by ``embaudit_tasks.steps``, finds passages that look relevant; this module
parses the source and builds the corpus.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

from embaudit.corpora.draw import Corpus, Flaw, Kind, TextPair, content_id, keep_rows
from embaudit.words.errors import CorpusError


@dataclass(frozen=True)
class HubPart:
    """One split or some files of a hub repository.

    Attributes:
        revision: a commit, branch or tag; None for ``main``, which is resolved to its commit.
        files: names or patterns, of which the first that matches is used; if empty, ``split`` is used.
        config: the configuration; None for the repository's default.
        split: the split; None for test, or the only one.
        first: read only this many rows.
        columns: the text, or a pair's two sides (and its score); if empty, columns are found by name.
    """

    repository: str
    revision: str | None
    files: tuple[str, ...] = ()
    config: str | None = None
    split: str | None = None
    first: int | None = None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class CorpusSpec:
    """What a corpus contains and how its records are read.

    Attributes:
        sample: the embedded file, or "" for the sample folder itself (read as a BEIR folder).
        joins_title: whether the text is "title text", as BEIR encodes passages; otherwise the title is kept separate.
        relation: of the pairs; positives and hard negatives from the same source are two corpora.
        beir: which part of a BEIR folder (corpus.jsonl, queries.jsonl, qrels) this corpus is.
    """

    name: str
    kind: Kind
    about: str
    sample: str
    hub: tuple[HubPart, ...]
    text_fields: tuple[str, ...] = ()
    joins_title: bool = False
    relation: str = "sts"
    beir: Literal["corpus", "queries", "qrels"] | None = None


def _sts(repository: str, revision: str, *files: str) -> HubPart:
    return HubPart(repository, revision, files or ("test.jsonl.gz",))


# English test sets only. STS 2022 is the revision of mteb's STS22.v2, without pairs with an empty side.
STS_PARTS = (
    _sts("mteb/sts12-sts", "a0d554a64d88156834ff5ae9920b964011b16384"),
    _sts("mteb/sts13-sts", "7e90230a92c190f1bf69ae9002b8cea547a64cca"),
    _sts("mteb/sts14-sts", "6031580fec1f6af667f0bd2da0a551cf4f0b2375"),
    _sts("mteb/sts15-sts", "ae752c7c21bf194d8b67fd573edf7ae58183cbe3"),
    _sts("mteb/sts16-sts", "4d8694f8f0e0100860b497b999b3dbed754a0513"),
    _sts("mteb/sts17-crosslingual-sts", "faeb762787bd10488a50c8b5be4a3b82e411949c", "test/en-en.jsonl.gz"),
    _sts(
        "mteb/sts22-crosslingual-sts",
        "d31f33a128469b20e357535c39b82fb3c3f6f2bd",
        *("test/en.jsonl.gz", "test/en.jsonl", "test/en.parquet"),
        *("en/test.jsonl.gz", "en/test.jsonl", "en/test-*.parquet"),
    ),
    _sts("mteb/stsbenchmark-sts", "b0fddb56ed78048fa8b90373c8a3cfc37b684831"),
    _sts("mteb/sickr-sts", "20a6d6f312dd54037fe07a32d58e5e168867909d"),
    _sts("mteb/biosses-sts", "d3fb88f8f02e40887cd149695127462bbcf29b4a"),
    _sts(
        "mteb/stsb_multi_mt",
        "29afa2569dcedaaa2fe6a3dcfebab33d28b82e8c",
        "test/en.parquet",
    ),
)

MSMARCO = ("mteb/msmarco", "c5a29a104738b98a9e76336939199e264163d4a0")

# One mined negative per query; the other configurations repeat the queries (triplet-50, -all, -hard).
TRIPLETS = HubPart(
    "sentence-transformers/msmarco-co-condenser-margin-mse-sym-mnrl-mean-v1",
    "efc1b6fbe06c131bd137997c97bb0f0c2d2268b9",
    ("triplet/train-*.parquet",),
)

_SPECS = (
    CorpusSpec(
        name="wikipedia",
        kind="texts",
        about="English Wikipedia sentences (SimCSE's training corpus), one per line",
        sample="wikipedia.txt",
        hub=(
            HubPart(
                "princeton-nlp/datasets-for-simcse",
                "e145e8bb659b2aa2669f32ef79cb4cdef6c58fef",
                ("wiki1m_for_simcse.txt",),
            ),
        ),
    ),
    CorpusSpec(
        name="msmarco",
        kind="texts",
        about="MS MARCO passages",
        sample="passages.jsonl",
        hub=(HubPart(*MSMARCO, ("corpus.jsonl", "corpus.jsonl.gz", "corpus/corpus-*.parquet")),),
        joins_title=True,
        beir="corpus",
    ),
    CorpusSpec(
        name="msmarco-queries",
        kind="texts",
        about="MS MARCO queries",
        sample="queries.jsonl",
        hub=(HubPart(*MSMARCO, ("queries.jsonl", "queries.jsonl.gz", "queries/queries-*.parquet")),),
        text_fields=("query", "text", "question"),
        beir="queries",
    ),
    CorpusSpec(
        name="msmarco-hard-negatives",
        kind="pairs",
        about="MS MARCO queries, each with a passage that looks relevant but is not",
        sample="",
        hub=(TRIPLETS,),
        joins_title=True,
        relation="hard_negative",
        beir="qrels",
    ),
    CorpusSpec(
        name="msmarco-positives",
        kind="pairs",
        about="MS MARCO queries, each with a passage that answers it",
        sample="",
        hub=(TRIPLETS,),
        joins_title=True,
        relation="positive",
        beir="qrels",
    ),
    CorpusSpec(
        name="sts",
        kind="pairs",
        about="sentence pairs with human similarity scores: the eleven English STS test sets",
        sample="sts.csv",
        hub=STS_PARTS,
    ),
    CorpusSpec(
        name="longdocs",
        kind="texts",
        about="longer labelled texts (on the hub: IMDB reviews, test split)",
        sample="longdocs.jsonl",
        hub=(
            HubPart(
                "mteb/imdb",
                "3d86128a09e091d6018b6d26cad27f2739fc2db7",
                ("test.jsonl",),
            ),
        ),
    ),
)

CORPORA: dict[str, CorpusSpec] = {spec.name: spec for spec in _SPECS}


MINED = "mined"
Method = Literal["bm25", "checkpoint"]
METHODS: tuple[Method, ...] = ("bm25", "checkpoint")


@dataclass(frozen=True)
class MinedSource:
    """A mining method and the BEIR folder to mine."""

    method: Method
    folder: Path

    @classmethod
    def parse(cls, name: str, source: str) -> MinedSource | None:
        """Parse ``mined:METHOD:FOLDER``; None for any other source.

        Raises:
            CorpusError: if the corpus is not one of hard negatives, the method is unknown, or there is no such folder.
        """
        kind, _, rest = source.partition(":")
        if kind != MINED:
            return None
        if name in CORPORA and CORPORA[name].relation != "hard_negative":
            minable = [spec.name for spec in CORPORA.values() if spec.relation == "hard_negative"]
            raise CorpusError(
                f"Corpus {name} cannot be mined: {source} gives hard negatives.",
                next_step=f"For example: --corpus {minable[0]}={source}",
            )
        method, _, folder = rest.partition(":")
        if method not in METHODS or not folder:
            raise CorpusError(
                f"{source!r} does not give a mining method and a folder.",
                next_step=f"Write {' or '.join(f'{MINED}:{known}:FOLDER' for known in METHODS)}.",
            )
        path = Path(folder).expanduser().absolute()
        if not path.is_dir():
            raise CorpusError(
                f"There is no folder {path} to mine hard negatives from.",
                next_step="Give a folder with corpus.jsonl, queries.jsonl and qrels/*.tsv.",
            )
        return cls(method, path)

    def __str__(self) -> str:
        return f"{MINED}:{self.method}:{self.folder}"


def mined_corpus(
    name: str, source: MinedSource, pairs: Iterable[tuple[str, str]], flaws: Iterable[Flaw] = ()
) -> Corpus:
    """The mined pairs as a corpus; blank and repeated ones are dropped and counted as usual.

    Args:
        flaws: rows of the folder that could not be read; they are counted too.

    Raises:
        CorpusError: if no pair is left.
    """
    mined = (TextPair(query, passage, None, "hard_negative") for query, passage in pairs)
    kept = keep_rows(chain(flaws, mined))
    if not kept.rows:
        raise CorpusError(
            f"Mining {source.folder} found no hard negatives: every passage is judged relevant.",
            next_step="Give a folder with more passages than relevant ones.",
        )
    return Corpus(
        corpus_id=content_id("pairs", kept.rows),
        name=name,
        kind="pairs",
        source=str(source),
        revision=None,
        counts=kept.counts,
        texts=(),
        pairs=tuple(row for row in kept.rows if isinstance(row, TextPair)),
    )
