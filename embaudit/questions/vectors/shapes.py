"""Ways to make one text of a row's fields, as programs do it: fields in an order, labels, what joins them.

What programs embed of a row by default, beside its text, is a table, in the order in which its rows are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from embaudit.stores.template import Part, Template

# What stands before a value: K is the field's name as it is, L in capital letters at words' starts.
LABELS = ("", "K: ", "L: ", "K:", "K=", "**L**: ", "[K] ", "# ", "- K: ")
LINES = LABELS[1:6]
# What joins two fields, and what joins them to the text.
JOINTS = ("\n", " ", ". ", "\n\n", ": ", " - ", ", ", " | ", "; ", "", " [SEP] ", "\n---\n", "\n-----\n", " / ", "] ")
BRACKETS = (("[", "]"), ("(", ")"), ("<", ">"), ("# ", ""), ("## ", ""), ("**", "**"), ('"', '"'))


@dataclass(frozen=True)
class Piece:
    """A field as it is written: its label's form, and what stands around its value."""

    name: str
    label: str = ""
    form: str = ""
    filling: str | None = None
    before: str = ""
    after: str = ""
    most: int = 0

    @property
    def shown_label(self) -> str:
        key = self.name.rpartition(".")[2]
        words = key.replace("_", " ").replace("-", " ")
        return self.label.replace("K", key).replace("L", words[:1].upper() + words[1:]) + self.before


@dataclass(frozen=True)
class Shape:
    """What is embedded of a row.

    Attributes:
        pieces: fields in order.
        between: what joins two of them.
        last: what joins those before the last one to it; None for ``between``.
        prefix, suffix: what stands around all of it, in every row.
        most: characters that are read of it; 0 for all.
        program: what makes such texts by default.
    """

    pieces: tuple[Piece, ...]
    between: str = "\n"
    last: str | None = None
    prefix: str = ""
    suffix: str = ""
    most: int = 0
    program: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(piece.name for piece in self.pieces)

    def template(self) -> Template:
        parts: list[Part] = [Part(self.prefix)] if self.prefix else []
        behind = ""
        for place, piece in enumerate(self.pieces):
            is_last = place == len(self.pieces) - 1
            joint = "" if not place else self.last if is_last and self.last is not None else self.between
            before = behind + joint + piece.shown_label
            parts.append(Part(before, piece.name, piece.form, piece.most, piece.filling))
            behind = piece.after
        return Template(tuple(parts), behind + self.suffix, self.most)

    def with_piece(self, place: int, **changes: object) -> Shape:
        pieces = list(self.pieces)
        pieces[place] = replace(pieces[place], **changes)  # type: ignore[arg-type]
        return replace(self, pieces=tuple(pieces), program="")


def plain(*names: str, between: str = "\n", last: str | None = None, label: str = "", program: str = "") -> Shape:
    """Fields of which all but the last one have a label of this form."""
    pieces = (*(Piece(name, label) for name in names[:-1]), Piece(names[-1]))
    return Shape(pieces, between, last, program=program)


def with_field(shape: Shape, name: str) -> Iterator[Shape]:
    """A shape with one field more, at any place, as its others are written and as a line."""
    styles = dict.fromkeys([*(piece.label for piece in shape.pieces[:-1]), "", "K: "])
    for label in styles:
        # Most programs put it before the text, behind what is there.
        for place in sorted(range(len(shape.pieces) + 1), key=lambda one: abs(one - (len(shape.pieces) - 1))):
            pieces = (*shape.pieces[:place], Piece(name, label), *shape.pieces[place:])
            yield replace(shape, pieces=pieces, program="")


def in_other_order(shape: Shape) -> Iterator[Shape]:
    count = len(shape.pieces)
    if count <= 3:
        orders: Iterator[Sequence[int]] = iter(permutations(range(count)))
    else:
        orders = (_moved(count, one, other) for one in range(count) for other in range(count) if one != other)
    for order in orders:
        if tuple(order) != tuple(range(count)):
            yield replace(shape, pieces=tuple(shape.pieces[one] for one in order), program="")


def _moved(count: int, one: int, to: int) -> list[int]:
    order = [place for place in range(count) if place != one]
    order.insert(to, one)
    return order


def without_a_field(shape: Shape) -> Iterator[Shape]:
    if len(shape.pieces) > 1:
        for place in range(len(shape.pieces)):
            yield replace(shape, pieces=(*shape.pieces[:place], *shape.pieces[place + 1 :]), program="")


def joined_otherwise(shape: Shape) -> Iterator[Shape]:
    if len(shape.pieces) < 2:
        return
    for joint in JOINTS:
        if len(shape.pieces) > 2 and joint != shape.between:
            yield replace(shape, between=joint, last=shape.between if shape.last is None else shape.last, program="")
            yield replace(shape, between=joint, last=None, program="")
        if joint != (shape.between if shape.last is None else shape.last):
            yield (
                replace(shape, last=joint, program="")
                if len(shape.pieces) > 2
                else replace(shape, between=joint, last=None, program="")
            )


def labelled_otherwise(shape: Shape) -> Iterator[Shape]:
    for label in LABELS:
        if len(shape.pieces) > 1:
            yield replace(
                shape,
                pieces=(*(replace(piece, label=label) for piece in shape.pieces[:-1]), shape.pieces[-1]),
                program="",
            )
            yield replace(shape, pieces=tuple(replace(piece, label=label) for piece in shape.pieces), program="")
    for place, piece in enumerate(shape.pieces):
        for label in LABELS:
            if label != piece.label:
                yield shape.with_piece(place, label=label)
        for before, after in BRACKETS:
            if not piece.before:
                yield shape.with_piece(place, before=before, after=after)


# What people put around all of it; prompts of well-known families come from where those are known.
SUFFIXES = ("\n", ".", " ", "</s>", "\n\n")


def wrapped(shape: Shape, prefixes: Sequence[str]) -> Iterator[Shape]:
    for prefix in prefixes:
        if prefix != shape.prefix:
            yield replace(shape, prefix=prefix, program="")
    for suffix in SUFFIXES:
        if suffix != shape.suffix:
            yield replace(shape, suffix=suffix, program="")


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
