"""Loads a corpus by name and source, for flows and notebooks.

A source is ``sample``, ``hub``, ``hub:owner/name[config]/split@revision:column``, or a local file or folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

from embaudit.corpora.catalog import CORPORA, CorpusSpec, HubPart
from embaudit.corpora.draw import Corpus, Draw, Flaw, Text, TextPair, content_id, keep_rows
from embaudit.corpora.fields import choose_columns, pairs_of, text_of
from embaudit.corpora.folders import beir_file, beir_pairs, data_set_name, sts_files
from embaudit.corpora.hub import locate
from embaudit.corpora.hub_reference import FORM, HUB, REFERENCE, HubRef
from embaudit.corpora.openers import ByteSource, local_file, os_failure
from embaudit.corpora.records import RENAME, SUFFIXES, read_records
from embaudit.corpora.tables import Record, is_saved, saved_records
from embaudit.words.errors import CorpusError, closest, did_you_mean

SAMPLE = "sample"
SAMPLE_FOLDER = Path(__file__).parent / "sample"

Row = Text | TextPair | Flaw


@dataclass(frozen=True)
class RowSource:
    """Rows not read yet, and where they come from.

    Attributes:
        share: of the source, if only random pieces of it are read.
    """

    rows: Iterator[Row]
    source: str
    revision: str | None = None
    share: float = 1.0


def load_corpus(
    name: str | CorpusSpec, source: str = SAMPLE, *, limit: int | None = None, draw: Draw | None = None
) -> Corpus:
    """Read corpus ``name``, or one that is described, from ``source``.

    Rows are in file order. A pool (``sts``) is read part by part, so a limit keeps only its first parts: use a draw
    from the whole pool instead.

    Args:
        limit: stop after this many kept rows.
        draw: keep the drawn rows, in file order; streams the whole source, or random pieces of a large one on the hub.

    Raises:
        CorpusError: if the name or source is unknown, a file is unreadable, or no row can be kept.
    """
    spec = _spec(name) if isinstance(name, str) else name
    if limit is not None and limit < 1:
        raise CorpusError(
            f"A limit of {limit} rows would keep nothing.", next_step="Give a limit of at least 1, or none."
        )
    draw = draw if limit is None else Draw(rows=limit)
    opened = _open(spec, source, draw)
    kept = keep_rows(opened.rows, draw)
    if not kept.rows:
        raise CorpusError(
            f"Corpus {spec.name} is empty: {opened.source} gave {kept.counts}.",
            next_step=f"Give a file with {_wanted_fields(spec)}.",
        )
    return Corpus(
        corpus_id=content_id(spec.kind, kept.rows),
        name=spec.name,
        kind=spec.kind,
        source=opened.source,
        revision=opened.revision,
        counts=replace(kept.counts, share_read=opened.share),
        texts=tuple(row for row in kept.rows if isinstance(row, Text)),
        pairs=tuple(row for row in kept.rows if isinstance(row, TextPair)),
    )


def _spec(name: str) -> CorpusSpec:
    if name in CORPORA:
        return CORPORA[name]
    raise CorpusError(
        f"Unknown corpus {name!r}.",
        next_step=did_you_mean(name.lower(), CORPORA) + f"Known: {', '.join(CORPORA)}.",
    )


def _open(spec: CorpusSpec, source: str, draw: Draw | None) -> RowSource:
    if source == SAMPLE:
        path = SAMPLE_FOLDER / spec.sample if spec.sample else SAMPLE_FOLDER
        return RowSource(_path_rows(spec, path), SAMPLE)
    if source == HUB:
        return _open_hub(spec, spec.hub, draw)
    if source.startswith(f"{HUB}:"):
        return _open_hub(spec, (HubRef.parse(source).as_part(spec),), draw)
    path = Path(source).expanduser()
    try:
        path.stat()
        return RowSource(_path_rows(spec, path), str(path))
    except (FileNotFoundError, ValueError) as error:
        raise _unknown_source(spec, source) from error
    except OSError as error:
        raise os_failure(source, error) from error


def _open_hub(spec: CorpusSpec, parts: tuple[HubPart, ...], draw: Draw | None) -> RowSource:
    # Locate all parts before reading the first row, so that a missing repository is reported at once.
    located = [locate(part, spec.name) for part in parts]

    is_start = draw is not None and draw.seed is None
    # A pool of several parts is read completely: none of them is large.
    is_one = len(parts) == 1 and parts[0].first is None
    chosen = located[0].pieces(draw.seed) if is_one and draw is not None and draw.seed is not None else None

    def rows() -> Iterator[Row]:
        if chosen:
            yield from _typed(spec, located[0].records_of(chosen, spec))
            return
        for part, files in zip(parts, located, strict=True):
            records = files.records(spec, stream=is_start or part.first is not None)
            data_set = part.repository.rpartition("/")[2] if len(parts) > 1 else ""
            yield from _of_data_set(data_set, _typed(spec, islice(records, part.first)))

    names = "+".join(files.repository.name for files in located)
    return RowSource(
        rows(),
        source=str(located[0].ref) if len(located) == 1 else f"{HUB}:{names}",
        revision="+".join(files.commit for files in located),
        share=chosen.share if chosen else 1.0,
    )


def _path_rows(spec: CorpusSpec, path: Path) -> Iterator[Row]:
    if not path.is_dir():
        return _rows(spec, local_file(path))
    if is_saved(path):
        choose = partial(choose_columns, shown=str(path), spec=spec, next_step=RENAME)
        return _typed(spec, saved_records(path, choose))
    if spec.beir == "qrels":
        return beir_pairs(path, spec)
    if spec.beir is not None:
        return _rows(spec, local_file(beir_file(path, spec.beir)))
    if spec.name == "sts":
        files = sts_files(path)
        names = [data_set_name(file, path) if len(files) > 1 else "" for file in files]
        parts = zip(names, files, strict=True)
        return (row for name, file in parts for row in _of_data_set(name, _rows(spec, local_file(file))))
    near = sorted(file.name for file in path.iterdir() if local_file(file).suffix in SUFFIXES)
    raise CorpusError(
        f"{path} is a folder, but corpus {spec.name} needs a file.",
        next_step=f"Name the file: {path / near[0]}" if near else f"Name a file in {', '.join(SUFFIXES)}.",
    )


def _of_data_set(name: str, rows: Iterable[Row]) -> Iterator[Row]:
    """The rows of one of several data sets, whose scores have a scale of their own; "" if there is only one."""
    for row in rows:
        if name and isinstance(row, TextPair):
            yield replace(row, data_set=f"{name}/{row.data_set}" if row.data_set else name)
        else:
            yield row


def _rows(spec: CorpusSpec, source: ByteSource) -> Iterator[Row]:
    return _typed(spec, read_records(source, spec.kind))


def _typed(spec: CorpusSpec, records: Iterable[Record | Flaw]) -> Iterator[Row]:
    for record in records:
        if isinstance(record, Flaw):
            yield record
        elif spec.kind == "texts":
            yield text_of(record, spec)
        else:
            yield from pairs_of(record, spec)


def _unknown_source(spec: CorpusSpec, source: str) -> CorpusError:
    path = Path(source).expanduser()
    siblings = [str(path.parent / file.name) for file in path.parent.iterdir()] if path.parent.is_dir() else []
    near = closest(source, [SAMPLE, HUB, *siblings])
    if near is None and REFERENCE.fullmatch(source):
        near = f"{HUB}:{source}"
    return CorpusError(
        f"There is no file or folder {source!r} for corpus {spec.name}.",
        next_step=(f"Did you mean {near!r}? " if near else "")
        + "A source is 'sample', 'hub', "
        + FORM
        + ", or a path.",
    )


def _wanted_fields(spec: CorpusSpec) -> str:
    if spec.kind == "texts":
        return "one text per line (.txt), or a field 'text'"
    if spec.relation == "sts":
        return "sentence1, sentence2 and score"
    return f"query and {spec.relation.removeprefix('hard_')}, or a BEIR folder whose qrels have such judgements"
