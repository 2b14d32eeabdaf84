"""Checkpoints, corpora and vocabularies: the subjects of audits."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from embaudit.checkpoint.vocabulary import Category
from embaudit.declared.table import COSINE, SHARE, BigInt, Row, Series, column, rule


class CheckpointRow(Row, table="checkpoint", key=("checkpoint_id",), scope="content"):
    """A checkpoint, identified by the content of its files."""

    checkpoint_id: str = column("16 hex digits over the four hashes of its content.")
    source: str = column("The checkpoint as the user named it.")
    revision: str | None = column("Commit on the hub; null for a folder.")
    weights_sha256: str = column("SHA-256 of its weights.")
    tokenizer_sha256: str = column("SHA-256 of its tokenizer.")
    config_sha256: str = column("SHA-256 of its configuration.")
    modules_sha256: str = column("SHA-256 of the configuration of its modules.")
    architecture: str = column("Class of the model, as its configuration names it.")
    hidden_size: int = column("d, the width of an embedding.", ge=1)
    layers: int | None = column("Number of layers; null if the configuration does not say.")
    heads: int | None = column("Attention heads per layer; null if the configuration does not say.")
    parameters: BigInt = column("Number of parameters.")
    vocabulary_size: int = column("Rows of the input embedding matrix.", ge=1)
    pooling: str = column("How token embeddings become the embedding of a text.")
    pooling_is_mean: bool = column("Whether the pooling is the mean over tokens.")
    modules: str = column("Modules that run after pooling, in order.")
    max_length: int = column(
        "Longest input, prompt and special tokens included; 1,000,000,000 without a limit.", unit="tokens", ge=1
    )
    prompt: str | None = column("Prompt prepended to every text; null: none.")
    query_prompt: str | None = column("Prompt for queries, if queries are compared with documents.")
    document_prompt: str | None = column("Prompt for documents, if queries are compared with documents.")
    pools_prompt: bool | None = column("Whether the prompt's tokens are pooled; null: no prompt.")


class CorpusRow(Row, table="corpus", key=("corpus_id",), scope="content", kept=True):
    """A corpus, and what was dropped when it was read."""

    corpus_id: str = column("Hash of its rows.")
    name: str = column("Name under which it was first ingested.")
    kind: Literal["texts", "pairs"] = column("Single texts, or pairs.")
    source: str = column("Where it was read from.")
    revision: str | None = column("Commit on the hub; null for local files.")
    read: BigInt = column("Rows seen: kept, duplicate, blank, broken, undecodable and undrawn.", ge=1)
    kept: BigInt = column("Rows in the corpus.", ge=1)
    duplicate: BigInt = column("Rows dropped as duplicates of an earlier row.")
    blank: BigInt = column("Rows dropped because they have no text.")
    broken: BigInt = column("Rows dropped because they could not be parsed.")
    undecodable: BigInt = column("Rows dropped because they are not UTF-8.")
    undrawn: BigInt = column("Rows of a larger source that were not sampled, and their duplicates.")
    share_read: float = column(
        "Share of the source's bytes that were read, in random pieces, of a large source on the hub; otherwise 1.",
        within=SHARE,
    )
    first_broken: str | None = column("What is wrong with the first row that could not be parsed.")
    ingested: datetime = column("When it was first ingested with this content.")

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
        """Every row that was read is kept, or counted under one reason for dropping it."""
        return read == kept + duplicate + blank + broken + undecodable + undrawn


class TextRow(Row, table="text", key=("corpus_id", "position"), scope="content", kept=True):
    """A text, in a corpus that some audit read."""

    corpus_id: str = column("Corpus that it belongs to.")
    position: BigInt = column("Row index in the corpus, from 0.", ge=0)
    text: str = column("The text.")
    title: str | None = column("Title, if the source has one.")
    label: str | None = column("Label, if the source has one.")
    external_id: str | None = column("Id in the source.")


class TextPairRow(Row, table="text_pair", key=("corpus_id", "position"), scope="content", kept=True):
    """A pair of texts, in a corpus that some audit read."""

    corpus_id: str = column("Corpus that it belongs to.")
    position: BigInt = column("Row index in the corpus, from 0.", ge=0)
    first: str = column("The first text.")
    second: str = column("The second text.")
    score: float | None = column("Human similarity score, if the source has one.")
    relation: str = column("sts, positive or hard_negative.")
    data_set: str | None = column("Data set of the score, whose scale is its own; null if the corpus is one data set.")


class AuditCorpusRow(Row, table="audit_corpus", key=("name",)):
    """The corpora that an audit read, by name."""

    name: str = column("Name of the corpus in this audit.")
    corpus_id: str = column("Id of the corpus.")


class TokenRow(Row, table="token", key=("checkpoint_id", "token_id"), scope="content"):
    """A vocabulary entry of a checkpoint."""

    checkpoint_id: str = column("Checkpoint that it belongs to.")
    token_id: int = column("Id of the token.", ge=0)
    token: str = column("The token as written in the vocabulary.")
    text: str = column("The token, decoded.")
    category: Category = column("Category by the paper's filter: what the decoded token becomes when encoded again.")
    is_reachable: bool = column("Whether some text produces the id.")
    origin: str = column("Kind of token: special, word, subword, digits, …")
    script: str = column("Unicode script of its letters.")
    embedding_norm: float = column("Norm of its input embedding.", ge=0)
    cosine_to_mean: float | None = column("Cosine of its input embedding to the mean embedding.", within=COSINE)


ROWS: tuple[type[Row], ...] = (
    CheckpointRow,
    CorpusRow,
    TextRow,
    TextPairRow,
    AuditCorpusRow,
    TokenRow,
)
