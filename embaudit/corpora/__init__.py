"""Corpora: Wikipedia, MS MARCO, STS and labelled texts, from the hub, a local file or the embedded sample.

``load`` is the entry point, ``catalog`` lists the corpora, and ``shapes`` has the result types.
"""

from embaudit.corpora.catalog import CORPORA, CorpusSpec, HubPart
from embaudit.corpora.folders import RetrievalFolder, read_retrieval
from embaudit.corpora.load import load_corpus
from embaudit.corpora.mined import MinedSource, mined_corpus
from embaudit.corpora.shapes import Corpus, IngestCounts, Text, TextPair

__all__ = [
    "CORPORA",
    "Corpus",
    "CorpusSpec",
    "HubPart",
    "IngestCounts",
    "MinedSource",
    "RetrievalFolder",
    "Text",
    "TextPair",
    "load_corpus",
    "mined_corpus",
    "read_retrieval",
]
