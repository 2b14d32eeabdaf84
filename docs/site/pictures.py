"""The pictures of pages in docs/: real runs on the packaged checkpoint, taken by Chromium, made small by pngquant.

``python docs/site/pictures.py [NAME …]`` writes them into ``docs/pictures``. The indexes are made here from the
embedded sample, each with a fault that is said where the picture is shown.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import load_file, save_file

from embaudit.checkpoint import Encoder, load_checkpoint
from embaudit.checkpoint.reference import CheckpointRef, resolve

CHECKPOINT = "packaged:all-MiniLM-L6-v2"
SAMPLE = files("embaudit.corpora.sample")
PICTURES = Path(__file__).parents[1] / "pictures"
# What is typed, and how many pixels of the page are shown.
COMMANDS = {
    "check": (f"check {CHECKPOINT}", 820),
    "parity": (f"parity {CHECKPOINT} --with ./served", 545),
    "vectors": (f"vectors index.parquet {CHECKPOINT}", 760),
    "search": (f"search index.faiss {CHECKPOINT} --texts texts.jsonl", 900),
    "why": (f"why index.faiss {CHECKPOINT} --texts texts.jsonl --golden golden.csv", 900),
    "switch": (f"switch {CHECKPOINT} ./my-next-checkpoint", 900),
}


def main(names: list[str]) -> None:
    chromium, pngquant = (shutil.which(each) or sys.exit(f"{each} is not here.") for each in ("chromium", "pngquant"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        put_files(folder)
        for page in names or COMMANDS:
            typed, height = COMMANDS[page]
            command = [sys.executable, "-m", "embaudit", *typed.split(), "--out", f"{page}.html"]
            # The exit code is the verdict's; without a page, something else went wrong.
            subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL)
            if not (folder / f"{page}.html").exists():
                sys.exit(f"embaudit {typed} wrote no page.")
            quietly = (
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--disable-lcd-text",
                f"--user-data-dir={folder}/profile",
            )
            picture = str(PICTURES / f"{page}.png")
            taken = (f"--window-size=1000,{height}", f"--screenshot={picture}", (folder / f"{page}.html").as_uri())
            subprocess.run([chromium, *quietly, *taken], check=True, capture_output=True)
            subprocess.run([pngquant, "--force", "--strip", "--output", picture, "64", picture], check=True)


def put_files(folder: Path) -> None:
    """An index of which a part was built with a prompt; a graph that was built thinly; a checkpoint that moved."""
    texts = sample_texts()
    encoder = Encoder(load_checkpoint(CHECKPOINT))
    vectors = unit(encoder.encode_texts(texts))
    stored = vectors.copy()
    prompted = list(range(0, len(texts), 20))
    stored[prompted] = unit(encoder.encode_texts([f"query: {texts[row]}" for row in prompted]))
    rows = {"id": [f"doc-{row}" for row in range(len(texts))], "text": texts, "vector": list(stored)}
    pq.write_table(pa.table(rows), folder / "index.parquet")
    (folder / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    graph = faiss.IndexHNSWFlat(vectors.shape[1], 4, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction, graph.hnsw.efSearch = 16, 8
    graph.add(vectors)
    faiss.write_index(graph, str(folder / "index.faiss"))
    put_golden(folder / "golden.csv", texts)
    put_next(folder / "my-next-checkpoint")
    put_served(folder / "served")


def sample_texts() -> list[str]:
    texts = (SAMPLE / "wikipedia.txt").read_text(encoding="utf-8").splitlines()
    for name in ("passages.jsonl", "quality_passages.jsonl", "longdocs.jsonl"):
        lines = (SAMPLE / name).read_text(encoding="utf-8").splitlines()
        texts += [
            f"{row['title']}. {row['text']}" if row.get("title") else row["text"] for row in map(json.loads, lines)
        ]
    return list(dict.fromkeys(text for text in texts if text.strip()))


def put_golden(path: Path, texts: list[str]) -> None:
    """Queries for what the long documents say at their end, and for passages."""
    sentences = [re.split(r"(?<=[.!?]) ", text) for text in texts]
    long = [row for row, text in enumerate(texts) if len(text.split()) > 250][::5]
    short = [row for row, text in enumerate(texts) if 30 < len(text.split()) < 90 and len(sentences[row]) > 2][::60]
    cases = [(sentences[row][-2], row) for row in long] + [(sentences[row][1], row) for row in short]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(
            [("query", "expect"), *((" ".join(asked.split()[:12]), row) for asked, row in cases)]
        )


def put_next(folder: Path) -> None:
    """The packaged checkpoint with its last layers moved a little, as a tuning moves them."""
    shutil.copytree(resolve(CheckpointRef.parse(CHECKPOINT)).folder, folder)
    path, rng = folder / "model.safetensors", np.random.default_rng(0)
    tensors = load_file(path)
    for name, tensor in tensors.items():
        if name.startswith(("encoder.layer.4", "encoder.layer.5")) and tensor.ndim == 2:
            moved = tensor + rng.normal(0, 0.25 * tensor.std(), tensor.shape)
            tensors[name] = moved.astype(tensor.dtype)
    path.chmod(0o644)
    save_file(tensors, path, metadata={"format": "pt"})


def put_served(folder: Path) -> None:
    """The packaged checkpoint as somebody serves it who believes that it reads 64 tokens."""
    shutil.copytree(resolve(CheckpointRef.parse(CHECKPOINT)).folder, folder)
    path = folder / "sentence_bert_config.json"
    path.chmod(0o644)
    path.write_text(json.dumps({**json.loads(path.read_text()), "max_seq_length": 64}))


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


if __name__ == "__main__":
    main(sys.argv[1:])
