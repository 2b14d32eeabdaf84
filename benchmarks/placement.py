"""What guides a search for places: gradients against what one more copy in a gap really does."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.anchors import STSB
from benchmarks.measured import Measured
from embaudit.checkpoint import Encoder, load_checkpoint
from embaudit.corpora.load import load_corpus
from embaudit.measures.placement.places import PlacedText, TextSearch, goal, random_places, text_of
from embaudit.measures.sticky.insertion import distinct_sentences, make_draw
from embaudit.statistics import spearman

DRAWS, ANCHORS = 20, 300
# Three severe tokens and an ordinary one, with so many copies there already.
TOKENS, COPIES = np.array([1934, 1487, 103, 2795]), (0, 3, 7)


def run() -> Iterator[Measured]:
    encoder = Encoder(load_checkpoint("packaged:all-MiniLM-L6-v2"))
    source = str(STSB) if STSB.is_file() else "sample"
    texts = [side for pair in load_corpus("sts", source).pairs for side in (pair.first, pair.second)]
    sentences = distinct_sentences(texts, DRAWS + ANCHORS, 0)
    dealt = [sentences[place] for place in np.random.default_rng(0).permutation(len(sentences))]
    draws = [make_draw(encoder.checkpoint, sentence, "suffix", 8, 0) for sentence in dealt[:DRAWS]]
    directions = goal(encoder, draws, dealt[DRAWS:]).directions
    for copies in COPIES:
        found: dict[str, list[float]] = {"weight of a copy": [], "input embeddings beside the gap": []}
        for draw, direction in zip(draws, directions, strict=True):
            text = text_of(encoder.checkpoint, draw)
            for token in TOKENS[:, None]:
                search = TextSearch(encoder, text, token, direction)
                held = random_places(text, copies, 1, 0)
                each = np.arange(text.gaps)[:, None]
                tried = np.sort(np.concatenate([np.repeat(held, text.gaps, axis=0), each], axis=1), axis=1)
                real = np.array([search.at(one[None]).values[0] for one in tried])
                salient = _saliency(encoder, text.filled(held, token)[0], direction)
                for name, guess in (
                    ("weight of a copy", search.slopes(held)[0]),
                    ("input embeddings beside the gap", _beside(salient, text, held[0])),
                ):
                    found[name].append(spearman(guess, real) or 0.0)
        for name, values in found.items():
            yield Measured(
                f"gradient by the {name}, against one copy more beside {copies}: Spearman's ρ, mean of {len(values)}",
                f"{np.mean(values):.2f}",
            )


def _saliency(encoder: Encoder, ids: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """(n,) x_i·∂(ê·g)/∂x_i over the input embeddings x."""
    import torch

    checkpoint, read = encoder.checkpoint, []

    def leaf(module: object, given: object, output: torch.Tensor) -> torch.Tensor:
        read.append(output.detach().requires_grad_(True))
        return read[-1]

    hook = checkpoint.model.get_input_embeddings().register_forward_hook(leaf)
    try:
        hidden = checkpoint.model(input_ids=torch.from_numpy(ids)[None].to(checkpoint.device)).last_hidden_state
    finally:
        hook.remove()
    vector = torch.nn.functional.normalize(hidden.mean(dim=1), dim=1)[0]
    (gradient,) = torch.autograd.grad(vector @ torch.from_numpy(direction).to(vector), read)
    saliency: np.ndarray = (gradient * read[0]).sum(dim=2)[0].detach().cpu().numpy()
    return saliency


def _beside(salient: np.ndarray, text: PlacedText, held: np.ndarray) -> np.ndarray:
    """(L + 1,) the sum over the two of the text's tokens (or special ones) that a gap lies between."""
    token = np.array([-1])
    own = np.flatnonzero(text.filled(held[None], token)[0] >= 0)
    ahead = len(text.head) + np.arange(text.gaps)
    return salient[own[ahead - 1]] + salient[own[np.minimum(ahead, len(own) - 1)]]
