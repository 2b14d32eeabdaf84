"""What programs embed of a row by default, beside its text: a table, in the order in which its rows are tried.

Sources are named where each stands; ``docs/vectors.md`` shows the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from embaudit.questions.vectors.shapes import Piece, Shape, plain

TITLES = ("title", "name", "heading", "headline", "subject", "filename", "file_name", "section", "document_title")
CONTEXTS = ("context", "contextual_text", "chunk_context", "situated_context", "contextualized_content", "summary")
# SimpleDirectoryReader keeps `file_path`, and leaves these out of what is embedded (readers.file.base).
LEFT_OUT = ("file_name", "file_type", "file_size", "creation_date", "last_modified_date", "last_accessed_date")
# A node's own fields, which are no metadata (llama_index.core.vector_stores.utils.node_to_metadata_dict).
OF_NODES = ("_node_content", "_node_type", "document_id", "doc_id", "ref_doc_id", "node_id", "id_", "id")
# Reads as AnythingLLM calls it: server/utils/TextSplitter/index.js, buildHeaderMeta.
ANYTHING = {"title": "sourceDocument", "published": "published", "chunksource": "source", "link": "source"}


@dataclass(frozen=True)
class Program:
    """A program, or a habit, that embeds more than the text.

    Attributes:
        name: as a finding calls it.
        what: what it embeds, for the docs.
        shapes: of these fields and the text's column.
    """

    name: str
    what: str
    shapes: Callable[[Sequence[str], str], Iterator[Shape]]


def key(name: str) -> str:
    return name.rpartition(".")[2].strip()


def _titles(fields: Sequence[str]) -> list[str]:
    """Fields that are called as titles are, the likeliest first."""
    known = {key(name).lower(): name for name in reversed(fields)}
    return [known[one] for one in TITLES if one in known]


def _llama_index(fields: Sequence[str], text: str) -> Iterator[Shape]:
    metadata = [name for name in fields if key(name) not in OF_NODES]
    kept = [name for name in metadata if key(name) not in LEFT_OUT]
    # Readers leave out one key or another.
    fewer = [tuple(name for name in kept if name != one) for one in kept]
    for names in dict.fromkeys([tuple(metadata), tuple(kept), *fewer, *((name,) for name in kept)]):
        if names:
            yield plain(*names, text, between="\n", last="\n\n", label="K: ")


def _anything_llm(fields: Sequence[str], text: str) -> Iterator[Shape]:
    called = {ANYTHING[key(name).lower()]: name for name in fields if key(name).lower() in ANYTHING}
    called |= {key(name): name for name in fields if key(name) in ANYTHING.values()}
    names = [(label, called[label]) for label in dict.fromkeys(ANYTHING.values()) if label in called]
    for some in dict.fromkeys([tuple(names), tuple(names[:2]), tuple(names[:1])]):
        if some:
            pieces = (*(Piece(name, f"{label}: ") for label, name in some), Piece(text))
            yield Shape(pieces, "\n", "\n</document_metadata>\n\n", "<document_metadata>\n")


def _joined_by(joint: str) -> Callable[[Sequence[str], str], Iterator[Shape]]:
    def shapes(fields: Sequence[str], text: str) -> Iterator[Shape]:
        for name in _titles(fields)[:2]:
            yield plain(name, text, between=joint)

    return shapes


def _haystack(fields: Sequence[str], text: str) -> Iterator[Shape]:
    if len(fields) > 1:
        yield plain(*fields, text, between="\n")


def _context(fields: Sequence[str], text: str) -> Iterator[Shape]:
    for name in (name for name in fields if key(name).lower() in CONTEXTS):
        yield plain(name, text, between="\n\n")
        yield plain(text, name, between="\n\n")


def _question(fields: Sequence[str], text: str) -> Iterator[Shape]:
    for name in (name for name in fields if key(name).lower() in ("question", "query", "q", "prompt")):
        yield plain(name, text, between="\n")
        # The question alone is embedded, and its answer kept beside it.
        yield Shape((Piece(name),))


def _titled(fields: Sequence[str], text: str) -> Iterator[Shape]:
    for name in _titles(fields)[:1]:
        for label, own in (("title: ", "text: "), ("Title: ", "Text: "), ("Title: ", "Content: ")):
            yield Shape((Piece(name, label), Piece(text, own)))


def _gemma(fields: Sequence[str], text: str) -> Iterator[Shape]:
    for name in _titles(fields)[:1]:
        yield Shape((Piece(name, "title: ", filling="none"), Piece(text, "text: ")), " | ")


def _prompted(fields: Sequence[str], text: str) -> Iterator[Shape]:
    for name in _titles(fields)[:1]:
        for prompt in ("passage: ", "search_document: "):
            for joint in (" ", "\n"):
                yield replace(plain(name, text, between=joint), prefix=prompt)


PROGRAMS = (
    # beir.retrieval.models: title and text by `sep`, a space by default.
    Program("BEIR and MTEB", "`{title} {text}`", _joined_by(" ")),
    # llama_index.core.schema: metadata_template "{key}: {value}", a newline between, "{metadata_str}\n\n{content}";
    # privateGPT takes these, but for doc_id (ingest_helper.py).
    Program("LlamaIndex", "`key: value` lines of the metadata, an empty line, the text", _llama_index),
    Program(
        "AnythingLLM", "`<document_metadata>`, `sourceDocument: …`, `published: …`, its end, the text", _anything_llm
    ),
    # haystack.components.embedders: meta_fields_to_embed and the content by embedding_separator, "\n" by default.
    Program("Haystack", "chosen fields and the text, a newline between", _joined_by("\n")),
    Program("Haystack", "all of the fields and the text, a newline between", _haystack),
    Program("", "`{title}. {text}`", _joined_by(". ")),
    Program("", "`{title}\\n\\n{text}`", _joined_by("\n\n")),
    Program("", "`{title}: {text}`", _joined_by(": ")),
    Program("", "`{title} - {text}`", _joined_by(" - ")),
    # The title as the first of two segments.
    Program("DPR", "`{title} [SEP] {text}`", _joined_by(" [SEP] ")),
    # anthropic.com/news/contextual-retrieval: what situates a chunk before it; its cookbook puts it behind, too.
    Program("contextual retrieval", "`{context}\\n\\n{text}`, or behind the text", _context),
    Program("", "`title: {title}\\ntext: {text}`", _titled),
    # ai.google.dev, EmbeddingGemma's model card.
    Program("EmbeddingGemma", "`title: {title|none} | text: {text}`", _gemma),
    # The documents' prompts of E5 and Nomic's models, before what BEIR makes of a row.
    Program("E5 and Nomic's models", "`passage: {title} {text}`, `search_document: {title} {text}`", _prompted),
    Program("", "`{question}\\n{text}`, or the question alone", _question),
)


def known_shapes(fields: Sequence[str], text: str) -> Iterator[Shape]:
    """What programs make of a store's fields by default, the most usual first."""
    for program in PROGRAMS:
        for shape in program.shapes(fields, text):
            yield replace(shape, program=program.name)
