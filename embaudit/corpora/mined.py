"""Hard negatives mined from a BEIR folder: the source ``mined:bm25:FOLDER`` or ``mined:checkpoint:FOLDER``.

``embaudit.measures.socm.contrast``, run by ``embaudit_tasks.mining``, finds passages that look relevant; this module
parses the source and builds the corpus.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

from embaudit.corpora.catalog import CORPORA
from embaudit.corpora.shapes import Corpus, TextPair, content_id
from embaudit.corpora.tally import Flaw, keep_rows
from embaudit.words.errors import CorpusError

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
