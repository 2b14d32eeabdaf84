"""Which kinds of stores there are: embaudit's own, and those of other packages (group ``embaudit.stores``).

What people keep vectors in that is not read: named by its content, with the line that makes it something read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from embaudit.stores.place import POINTER, StorePlace
from embaudit.stores.store import StoreKind
from embaudit.system.installed import installed
from embaudit.words.errors import CorpusError, EmbauditError, UsageError
from embaudit.words.sentences import listing

GROUP = "embaudit.stores"
# In the order in which they are asked: what is told by its content before what is told by a suffix.
OWN = (
    "remote_parquet",
    "postgres",
    "chroma",
    "chroma_old",
    "lancedb",
    "qdrant",
    "milvus",
    "milvus_file",
    "duckdb",
    "sqlite",
    "numpy",
    "faiss",
    "hnswlib",
    "usearch",
    "annoy",
    "langchain_faiss",
    "llama_index",
    "smart_connections",
    "beside",
    "parquet",
    "arrow",
    "tensors",
    "hdf5",
    "pickles",
    "csv",
    "word_vectors",
    "elasticsearch",
    "openai_batch",
    "json",
    "parts",
)
# Those that share a module.
TOGETHER = {
    **{"chroma_old": "chroma", "numpy": "arrays", "parquet": "arrow", "word_vectors": "csv"},
    **dict.fromkeys(("hnswlib", "usearch", "annoy"), "index_files"),
    **dict.fromkeys(("langchain_faiss", "llama_index"), "frameworks"),
    **dict.fromkeys(("hdf5", "pickles"), "tensors"),
    **dict.fromkeys(("openai_batch", "parts"), "json"),
}


def store_kinds() -> Iterator[StoreKind]:
    """All of them, those of other packages first: who installs one wants it to be used.

    Raises:
        UsageError: if one of another package cannot be used.
    """
    for _, kind in installed(GROUP, StoreKind, "store"):
        yield kind
    for module in dict.fromkeys(TOGETHER.get(name, name) for name in OWN):
        yield from import_module(f"embaudit.stores.{module}").KINDS


def kind_of(place: StorePlace) -> StoreKind | None:
    """The first kind that recognises a place."""
    return next((kind for kind in store_kinds() if kind.recognises(place)), None)


def kind_by_content(place: StorePlace) -> StoreKind | None:
    """That of a file whose name says nothing: JSON begins as nothing else does."""
    is_named = bool(place.is_path and any(one.is_one(place, place.head) for one in TABLES))
    if is_named or not place.head.lstrip().startswith(JSON_STARTS):
        return None
    return next(kind for kind in store_kinds() if kind.name == "JSON")


JSON_STARTS = (b'{"', b"{\n", b"{\r", b"[{", b"[[", b"[\n", b"[\r")
# Of a folder: files that are looked at, and that are named.
MOST_FILES, NAMED = 200, 4
START_BYTES = 4_096
ZIP, BEGIN = b"PK\x03\x04", 40


class Unread(NamedTuple):
    """One thing that is named.

    Attributes:
        is_one: whether a place is one, by its first bytes.
        what: as the end of "FILE is …".
        how: what to type; ``FILE`` stands for its name.
    """

    is_one: Callable[[StorePlace, bytes], bool]
    what: str
    how: str


def _starts(*starts: bytes) -> Callable[[StorePlace, bytes], bool]:
    return lambda place, start: start.startswith(starts)


def _ends(*endings: str) -> Callable[[StorePlace, bytes], bool]:
    return lambda place, start: not place.is_folder and place.path.name.lower().endswith(endings)


def _holds(*patterns: str) -> Callable[[StorePlace, bytes], bool]:
    return lambda place, start: place.holds(*patterns)


def _packed(magic: bytes, ending: str) -> Callable[[StorePlace, bytes], bool]:
    return lambda place, start: start.startswith(magic) and not place.path.name.endswith(f".tar{ending}")


def _python(line: str) -> str:
    return f'python -c "{line}"'


ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst", ".7z")
ROWS_OF = "Export its rows as JSON lines or CSV, with an id, a text and a list of numbers each."
YAML = "import json, yaml; json.dump(yaml.safe_load(open('FILE')), open('FILE.json', 'w'), default=str)"
PACKED = (
    (b"\xfd7zXZ", ".xz", "xz -dk"),
    (b"BZh", ".bz2", "bunzip2 -k"),
    (b"\x28\xb5\x2f\xfd", ".zst", "zstd -d"),
)
TABLES: Sequence[Unread] = (
    Unread(_starts(POINTER), "a pointer of Git LFS, not the file itself", "Fetch it: git lfs pull"),
    Unread(
        lambda place, start: start.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html")),
        "a web page",
        "Fetch the file itself, by the address of its raw content.",
    ),
    Unread(
        _holds("config*", "embeddings", "documents"),
        "an index of txtai",
        "Export its texts: sqlite3 -header -csv FILE/documents "
        "'SELECT indexid AS id, text FROM sections ORDER BY indexid' > texts.csv; and name both: "
        "embaudit vectors FILE/embeddings FUNCTION --texts texts.csv",
    ),
    *(
        Unread(
            _holds(name),
            "a store of Zarr",
            "Export its matrix: "
            + _python("import numpy, zarr; numpy.save('FILE.npy', zarr.open('FILE')[:])")
            + " (of a group: zarr.open('FILE')['NAME'][:])",
        )
        for name in (".zarray", ".zgroup", "zarr.json")
    ),
    Unread(
        lambda place, start: (
            place.holds("config.json")
            and (place.holds("*.safetensors") or place.holds("pytorch_model*.bin") or place.holds("tokenizer*"))
        ),
        "a checkpoint, not a store",
        "Name the store behind it: embaudit vectors STORE FILE; or look at the checkpoint: embaudit check FILE",
    ),
    Unread(
        _starts(b"GGUF"), "a checkpoint in GGUF, not a store", "Name the store behind it: embaudit vectors STORE FILE"
    ),
    Unread(
        _ends(".usearch"),
        "an index of usearch",
        "Export it: "
        + _python(
            "import numpy; from usearch.index import Index; i = Index.restore('FILE'); k = numpy.array(list(i.keys)); "
            "numpy.savez('FILE.npz', id=k, vectors=i.get(k))"
        ),
    ),
    Unread(
        _ends(".ann", ".annoy"),
        "an index of Annoy",
        "Export it, with its number of dimensions for D: "
        + _python(
            "import numpy; from annoy import AnnoyIndex; a = AnnoyIndex(D, 'angular'); a.load('FILE'); "
            "numpy.save('FILE.npy', [a.get_item_vector(i) for i in range(a.get_n_items())])"
        ),
    ),
    Unread(
        lambda place, start: place.suffix == ".bson" or (len(start) > 4 and _is_bson(place, start)),
        "a dump of MongoDB",
        "Write it as JSON: bsondump --outFile=FILE.jsonl FILE",
    ),
    Unread(
        _starts(b"Obj\x01"),
        "a file of Avro",
        "Write it as Parquet: "
        + _python(
            "import fastavro, pyarrow as pa, pyarrow.parquet as pq; "
            "pq.write_table(pa.Table.from_pylist(list(fastavro.reader(open('FILE', 'rb')))), 'FILE.parquet')"
        ),
    ),
    Unread(
        lambda place, start: place.suffix in (".xlsx", ".xls", ".ods"),
        "a spreadsheet",
        "Write it as CSV: " + _python("import pandas; pandas.read_excel('FILE').to_csv('FILE.csv', index=False)"),
    ),
    Unread(
        _starts(b"redb\x1a\n"),
        "a database of redb, as ruvector and others keep their vectors in",
        "Export its rows by the program that wrote it, as JSON lines with an id, a text and a list of numbers each.",
    ),
    Unread(
        _starts(b"PGDMP"),
        "a dump of PostgreSQL",
        "Restore it (pg_restore -d DATABASE FILE) and name the database: postgresql://USER@HOST/DATABASE",
    ),
    Unread(
        lambda place, start: b"PostgreSQL database dump" in start,
        "a dump of PostgreSQL",
        "Load it (psql -d DATABASE -f FILE) and name the database: postgresql://USER@HOST/DATABASE; or export the "
        "table where it was made: psql -c '\\copy TABLE TO rows.csv CSV HEADER'",
    ),
    Unread(
        lambda place, start: start.startswith(b"PRAGMA foreign_keys") or start.startswith(b"BEGIN TRANSACTION;"),
        "a dump of SQLite",
        "Load it: sqlite3 FILE.db < FILE",
    ),
    Unread(
        lambda place, start: start.startswith((b"-- MySQL dump", b"-- MariaDB dump", b"/*!40101", b"/*M!999999")),
        "a dump of MySQL or MariaDB",
        "Load it, and export the table as CSV with its vectors as text: SELECT VEC_ToText(embedding) …",
    ),
    Unread(
        _starts(b"REDIS0"),
        "a dump of Redis",
        "Load it into a server, and export each key's text and vector as JSON lines.",
    ),
    Unread(
        lambda place, start: place.suffix == ".sql",
        "a script of SQL",
        "Run it in its database, and name that: a SQLite or DuckDB file, or postgresql://USER@HOST/DATABASE",
    ),
    Unread(
        lambda place, start: _is_binary_words(start),
        "word vectors in word2vec's binary form",
        "Write them as text: "
        + _python(
            "from gensim.models import KeyedVectors as K; "
            "K.load_word2vec_format('FILE', binary=True).save_word2vec_format('FILE.vec')"
        ),
    ),
    Unread(lambda place, start: start.startswith(b"<?xml"), "XML", ROWS_OF),
    Unread(_ends(".yaml", ".yml"), "YAML", "Write it as JSON: " + _python(YAML)),
    Unread(_ends(".surql"), "a script of SurrealDB", ROWS_OF),
    Unread(
        _ends(".f32", ".f32bin", ".raw"),
        "a file of raw numbers",
        "Write them as a matrix, with the number of dimensions for D: "
        + _python("import numpy; numpy.save('FILE.npy', numpy.fromfile('FILE', 'float32').reshape(-1, D))"),
    ),
    *(
        Unread(_packed(magic, ending), "compressed", f"Unpack it, and name what comes out: {line} FILE")
        for magic, ending, line in PACKED
    ),
    Unread(
        lambda place, start: start.startswith((ZIP, b"7z\xbc\xaf")) or start[257:262] == b"ustar",
        "an archive",
        "Unpack it (unzip, tar xf), and name what is in it.",
    ),
    Unread(_ends(*ARCHIVES), "an archive", "Unpack it (unzip, tar xf), and name what is in it."),
)


def _is_bson(place: StorePlace, start: bytes) -> bool:
    """Whether it begins with a document: its length, a type, a name, and a zero at its end."""
    size = int.from_bytes(start[:4], "little")
    return 5 < size <= len(start) and start[size - 1] == 0 and start[4] in range(1, 20) and b"_id\0" in start[5:9]


def _is_binary_words(start: bytes) -> bool:
    line, _, rest = start.partition(b"\n")
    is_text = rest.decode("utf-8", errors="ignore").encode() == rest
    return len(numbers := line.split()) == 2 and all(one.isdigit() for one in numbers) and not is_text


def refusal(place: StorePlace) -> EmbauditError:
    """Says what a place is that no kind reads, and what to do."""
    if place.is_path and not place.path.exists():
        return CorpusError(f"There is no file or folder {place.shown}.", next_step="Check the path.")
    start = b""
    if place.is_path and place.path.is_file():
        with place.path.open("rb") as file:
            start = file.read(START_BYTES)
        if not start:
            return CorpusError(f"{place.shown} is no store of vectors: it is empty.", next_step="Export it again.")
    if place.is_path and (known := next((one for one in TABLES if one.is_one(place, start)), None)):
        return UsageError(
            f"{place.shown} is {known.what}, which is not read.",
            next_step=known.how.replace("FILE", place.shown.rstrip("/")),
        )
    if place.is_compressed:
        return UsageError(f"{place.shown} is compressed.", next_step=f"Unpack it first: gunzip {place.shown}")
    names = listing(dict.fromkeys(kind.name for kind in store_kinds()))
    if place.is_folder:
        return _of_folder(place, names)
    begins = f" It begins with {start[:BEGIN]!r}." if start else ""
    return UsageError(
        f"{place.shown} is no store of vectors that is read.{begins}",
        next_step="Write it as Parquet, JSON lines or CSV, with a text and a list of numbers in each row. "
        f"Read are {names}.",
    )


def only_file_of(place: StorePlace) -> tuple[StorePlace, StoreKind] | None:
    """The one file of a folder that is a store, where the folder itself is none."""
    found = _files_of(place)
    return found[0] if len(found) == 1 else None


def _files_of(place: StorePlace) -> list[tuple[StorePlace, StoreKind]]:
    if not place.is_folder or any(one.is_one(place, b"") for one in TABLES):
        return []
    found = []
    for path in sorted(Path(place.path).iterdir())[:MOST_FILES]:
        own = StorePlace(str(path))
        kind = kind_of(own) if path.is_file() and not path.name.startswith(".") else None
        if kind is not None and (not own.is_compressed or kind.takes_gzip):
            found.append((own, kind))
    return found


def _of_folder(place: StorePlace, names: str) -> EmbauditError:
    found = [own.shown for own, _ in _files_of(place)]
    if found:
        more = f" and {len(found) - NAMED:,} more" if len(found) > NAMED else ""
        return UsageError(
            f"{place.shown} is a folder that holds no vectors that are read as a whole. By themselves, these may be: "
            f"{', '.join(found[:NAMED])}{more}.",
            next_step=f"Name the one with the vectors: embaudit vectors {found[0]}; if its texts are in another, that: "
            "--texts FILE",
        )
    return UsageError(f"{place.shown} is a folder that holds no vectors that are read.", next_step=f"Read are {names}.")
