"""Checkpoints, corpora and vocabularies: what audits are about."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from embaudit.table import COSINE, SHARE, BigInt, Row, Series, column, rule
from embaudit.vocabulary.entries import Category


class CheckpointRow(Row, table="checkpoint", key=("checkpoint_id",), scope="content"):
    """A checkpoint, identified by the content of its files."""

    checkpoint_id: str = column("16 hex digits over the four hashes of its content.")
    source: str = column("The checkpoint as the user named it.")
    revision: str | None = column("Commit on the hub; null for a folder.")
    weights_sha256: str = column("SHA-256 of its weights.")
    tokenizer_sha256: str = column("SHA-256 of its tokenizer.")
    config_sha256: str = column("SHA-256 of its configuration.")
    modules_sha256: str = column("SHA-256 of what says which modules run, and how.")
    architecture: str = column("Class of the model, as its configuration names it.")
    hidden_size: int = column("d, the width of an embedding.", ge=1)
    layers: int | None = column("Number of layers; null where the configuration does not say.")
    heads: int | None = column("Attention heads per layer; null where the configuration does not say.")
    parameters: BigInt = column("Number of parameters.")
    vocabulary_size: int = column("Rows of the input embedding matrix.", ge=1)
    pooling: str = column("How token embeddings become the embedding of a text.")
    pooling_is_mean: bool = column("Whether the pooling is the mean over tokens.")
    modules: str = column("What runs after pooling, in order.")
    max_length: int = column("Longest input, prompt and special tokens included.", unit="tokens", ge=1)
    prompt: str | None = column("What stands before every text; null: nothing.")
    query_prompt: str | None = column("What stands before queries instead, where queries and documents are compared.")
    document_prompt: str | None = column(
        "What stands before documents instead, where queries and documents are compared."
    )
    pools_prompt: bool | None = column("Whether pooling takes in the prompt's tokens; null: there are none.")


class CorpusRow(Row, table="corpus", key=("corpus_id",), scope="content", kept=True):
    """A corpus that was read, and what was dropped from it."""

    corpus_id: str = column("Hash of its rows.")
    name: str = column("Name under which it was first ingested.")
    kind: Literal["texts", "pairs"] = column("Whether it has single texts or pairs.")
    source: str = column("Where it was read from.")
    revision: str | None = column("Commit on the hub; null for local files.")
    read: BigInt = column("Rows that were seen: kept, duplicate, blank, broken, undecodable and undrawn ones.", ge=1)
    kept: BigInt = column("Rows that the corpus has.", ge=1)
    duplicate: BigInt = column("Rows dropped because an earlier one is the same.")
    blank: BigInt = column("Rows dropped because they have no text.")
    broken: BigInt = column("Rows dropped because they could not be parsed.")
    undecodable: BigInt = column("Rows dropped because they are not UTF-8.")
    undrawn: BigInt = column("Rows of a larger source that its draw left out, and duplicates of them.")
    share_read: float = column(
        "Share of the source's bytes in the random pieces that were read of a large one on the hub; else 1.",
        within=SHARE,
    )
    ingested: datetime = column("When it was first found to be so.")

    @rule
    def counts_add_up(
        read: Series,
        kept: Series,
        duplicate: Series,
        blank: Series,
        broken: Series,
        undecodable: Series,
        undrawn: Series,
    ) -> Series:
        """Every row that was seen is kept, or counted among the others."""
        return read == kept + duplicate + blank + broken + undecodable + undrawn


class TextRow(Row, table="text", key=("corpus_id", "position"), scope="content", kept=True):
    """A text of a corpus that some audit read."""

    corpus_id: str = column("Corpus that it belongs to.")
    position: BigInt = column("Place among the rows of the corpus, from 0.", ge=0)
    text: str = column("The text.")
    title: str | None = column("Title, where the source has one.")
    label: str | None = column("Label, where the source has one.")
    external_id: str | None = column("What the source calls it.")


class TextPairRow(Row, table="text_pair", key=("corpus_id", "position"), scope="content", kept=True):
    """A pair of texts of a corpus that some audit read."""

    corpus_id: str = column("Corpus that it belongs to.")
    position: BigInt = column("Place among the rows of the corpus, from 0.", ge=0)
    first: str = column("The first text.")
    second: str = column("The second text.")
    score: float | None = column("Score that people gave it, where the source has one.")
    relation: str = column("sts, positive or hard_negative.")


class AuditCorpusRow(Row, table="audit_corpus", key=("name",)):
    """Which corpus an audit read under which name."""

    name: str = column("Name of the corpus in this audit.")
    corpus_id: str = column("The corpus.")


class TokenRow(Row, table="token", key=("checkpoint_id", "token_id"), scope="content"):
    """An entry of a checkpoint's vocabulary."""

    checkpoint_id: str = column("Checkpoint that it belongs to.")
    token_id: int = column("Id of the token.", ge=0)
    token: str = column("The token as written in the vocabulary.")
    text: str = column("The token, decoded.")
    category: Category = column("The paper's filter: what becomes of the decoded token when it is encoded again.")
    is_reachable: bool = column("Whether some text produces the id.")
    origin: str = column("Kind of the token: special, word, subword, digits, …")
    script: str = column("Unicode script of its letters.")
    embedding_norm: float = column("Length of its input embedding.", ge=0)
    cosine_to_mean: float | None = column("Cosine of its input embedding to the mean of them all.", within=COSINE)


ROWS: tuple[type[Row], ...] = (
    CheckpointRow,
    CorpusRow,
    TextRow,
    TextPairRow,
    AuditCorpusRow,
    TokenRow,
)
