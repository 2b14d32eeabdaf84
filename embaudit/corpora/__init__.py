"""Corpora: Wikipedia, MS MARCO, STS and labelled texts, from the hub, a local file or the embedded sample.

``load`` is the entry point, ``catalog`` lists the corpora, and ``tally`` has the result types.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embaudit.corpora.catalog import CORPORA as CORPORA
    from embaudit.corpora.catalog import CorpusSpec as CorpusSpec
    from embaudit.corpora.catalog import HubPart as HubPart
    from embaudit.corpora.catalog import MinedSource as MinedSource
    from embaudit.corpora.catalog import mined_corpus as mined_corpus
    from embaudit.corpora.folders import RetrievalFolder as RetrievalFolder
    from embaudit.corpora.folders import read_retrieval as read_retrieval
    from embaudit.corpora.load import load_corpus as load_corpus
    from embaudit.corpora.tally import Corpus as Corpus
    from embaudit.corpora.tally import IngestCounts as IngestCounts
    from embaudit.corpora.tally import Text as Text
    from embaudit.corpora.tally import TextPair as TextPair

# Imported on first use: a request needs only how a draw is named, and every --help shows that.
_PLACES = {
    "CORPORA": "catalog",
    "Corpus": "tally",
    "CorpusSpec": "catalog",
    "HubPart": "catalog",
    "IngestCounts": "tally",
    "MinedSource": "catalog",
    "RetrievalFolder": "folders",
    "Text": "tally",
    "TextPair": "tally",
    "load_corpus": "load",
    "mined_corpus": "catalog",
    "read_retrieval": "folders",
}
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


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"embaudit.corpora.{_PLACES[name]}"), name)
