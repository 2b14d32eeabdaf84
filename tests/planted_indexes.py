"""FAISS indexes with known faults, over clustered vectors of unit length."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import faiss
import numpy as np

ROWS, D = 1_500, 32
INNER, L2 = faiss.METRIC_INNER_PRODUCT, faiss.METRIC_L2


def clustered(rows: int = ROWS, dimension: int = D, clusters: int = 60, noise: float = 0.6) -> np.ndarray:
    """(rows, D) float32 of unit length, around so many centres."""
    generator = np.random.default_rng(0)
    centres = generator.normal(size=(clusters, dimension))
    own = centres[generator.integers(0, clusters, rows)] + noise * generator.normal(size=(rows, dimension))
    return np.asarray(own / np.linalg.norm(own, axis=1, keepdims=True), dtype=np.float32)


def written(index: Any, file: Path) -> Path:
    faiss.write_index(index, str(file))
    return file


def built(description: str, vectors: np.ndarray, metric: int = INNER, **attributes: int) -> Any:
    """An index by FAISS's description of it."""
    index = faiss.index_factory(vectors.shape[1], description, metric)
    index.train(vectors)
    index.add(vectors)
    for name, value in attributes.items():
        faiss.ParameterSpace().set_index_parameter(index, name, float(value))
    return index


def graph(vectors: np.ndarray, links: int, construction: int, ef: int) -> Any:
    """An HNSW graph by Euclidean distance; the same every time."""
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    index = faiss.IndexHNSWFlat(vectors.shape[1], links)
    index.hnsw.efConstruction, index.hnsw.efSearch = construction, ef
    index.add(vectors)
    faiss.omp_set_num_threads(threads)
    return index


def without_links_to(index: Any, rows: Sequence[int]) -> Any:
    """A graph of which no link leads to these rows, which have no part in its upper levels."""
    hnsw = index.hnsw
    links, offsets = faiss.vector_to_array(hnsw.neighbors), faiss.vector_to_array(hnsw.offsets)
    assert (faiss.vector_to_array(hnsw.levels)[list(rows)] == 1).all()
    base = hnsw.cum_nb_neighbors(1)
    for start, end in pairwise(offsets):
        for low, high in ((start, start + base), (start + base, end)):
            own = links[low:high]
            kept = own[(own >= 0) & ~np.isin(own, rows)]
            links[low:high] = -1
            links[low : low + len(kept)] = kept
    faiss.copy_array_to_vector(links, hnsw.neighbors)
    return index


def on_the_ground(index: Any, count: int) -> list[int]:
    """Rows that are in the lowest level alone, drawn at random."""
    levels = faiss.vector_to_array(index.hnsw.levels)
    return sorted(np.random.default_rng(1).permutation(np.flatnonzero(levels == 1))[:count].tolist())
