"""Attention received by an appended token: against one text at a time, and the permutation test against scipy."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import tiny_bert
from tiny_models import build, load

from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint
from embaudit.checkpoint.anatomy.watch import eager_attention
from embaudit.measures.sticky.evidence import attention
from embaudit.measures.sticky.evidence.attention import (
    attention_received,
    compare_attention,
    permute_tokens,
    received_at,
    wasserstein_distances,
)
from embaudit.measures.sticky.tables import StickyAttentionRow
from embaudit.words.errors import MeasureError

pytestmark = pytest.mark.usefixtures("one_thread")

if TYPE_CHECKING:
    LoadFamily = Callable[[str], Checkpoint]

SENTENCES = ["the river is long", "gold", "three ships were found by the king in the north of the state"]
TOKENS = np.array([3, 10, 25, 60, 61, 100, 150])
ENCODERS = ("bert", "roberta", "distilbert", "mpnet", "albert", "t5")
DECODERS = ("qwen2", "llama")


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> LoadFamily:
    """The tiny model of a family, built once."""
    return cache(lambda name: load(build(name, tmp_path_factory.mktemp("attention") / name)))


@pytest.fixture
def tiny(tmp_path: Path) -> Checkpoint:
    """A tiny BERT of one's own, to break."""
    return load_checkpoint(str(tiny_bert(tmp_path / "bert")), LoadOptions(device="cpu"))


def slow_received(checkpoint: Checkpoint, sentence: str, token_id: int) -> list[float]:
    """One text, one forward pass, one number at a time."""
    import torch

    content = checkpoint.content_ids(sentence, limit=checkpoint.content_limit - 1)
    ids = [*checkpoint.prefix_ids, *content, token_id, *checkpoint.suffix_ids]
    place = len(checkpoint.prefix_ids) + len(content)
    former = checkpoint.model.config._attn_implementation
    checkpoint.model.set_attn_implementation("eager")
    with torch.no_grad():
        layers = checkpoint.model(input_ids=torch.tensor([ids]), output_attentions=True).attentions
    checkpoint.model.set_attn_implementation(former)
    means = []
    for layer in layers:
        total, heads = 0.0, layer.shape[1]
        for head in range(heads):
            for query in range(len(ids)):
                total += float(layer[0, head, query, place])
        means.append(total / (heads * len(ids)))
    return means


@pytest.mark.parametrize("name", [*ENCODERS, *DECODERS])
def test_values_are_those_of_one_text_at_a_time(family: LoadFamily, name: str) -> None:
    checkpoint = family(name)
    received = attention_received(Encoder(checkpoint), SENTENCES, TOKENS)
    slow = [[slow_received(checkpoint, sentence, int(token)) for sentence in SENTENCES] for token in TOKENS]
    assert received.shape == (7, 3, 2)
    assert received.dtype == np.float64
    assert np.abs(received - np.array(slow)).max() <= 1e-6


@pytest.mark.parametrize("name", ["bert", "t5", "qwen2"])
def test_a_value_depends_on_no_other_token_sentence_or_batch(family: LoadFamily, name: str) -> None:
    checkpoint = family(name)
    whole = attention_received(Encoder(checkpoint), SENTENCES, TOKENS)
    for size in (1, 40, 100_000):
        again = attention_received(Encoder(checkpoint, tokens_per_batch=size), SENTENCES[::-1], TOKENS[::-1].copy())
        assert np.abs(again[::-1, ::-1] - whole).max() <= 1e-6
    some = attention_received(Encoder(checkpoint), SENTENCES[1:2], TOKENS[2:4])
    assert np.abs(some - whole[2:4, 1:2]).max() <= 1e-6
    assert np.array_equal(attention_received(Encoder(checkpoint), SENTENCES, TOKENS, seed=9), whole)


def test_batches_keep_both_limits_and_what_was_done_is_counted(
    family: LoadFamily, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = family("bert")
    shapes: list[tuple[int, ...]] = []
    attentions = attention._attentions

    def recorded(encoder: Encoder, ids: np.ndarray) -> Any:
        shapes.append(ids.shape)
        return attentions(encoder, ids)

    monkeypatch.setattr(attention, "_attentions", recorded)
    done: list[int] = []
    encoder = Encoder(checkpoint, tokens_per_batch=30)
    attention_received(encoder, SENTENCES, TOKENS, progress=done.append)
    lengths = [len(checkpoint.content_ids(sentence)) + 3 for sentence in SENTENCES]
    probe, *batches = shapes
    assert probe == (1, 1)
    assert all(rows == 1 or rows * n <= 30 for rows, n in batches)
    assert max(rows for rows, _ in batches) > 1
    assert sum(done) == encoder.texts == 7 * 3
    assert encoder.tokens == 7 * sum(lengths)

    shapes.clear()
    # 2 layers of 4 heads: two texts of the shortest sentence fit.
    monkeypatch.setattr(attention, "FLOATS_PER_BATCH", 2 * 8 * min(lengths) ** 2)
    attention_received(Encoder(checkpoint), SENTENCES, TOKENS)
    assert {rows for rows, n in shapes[1:] if n == min(lengths)} == {2, 1}
    assert {rows for rows, n in shapes[1:] if n > min(lengths)} == {1}


def test_a_long_sentence_is_cut_and_its_token_stays(family: LoadFamily) -> None:
    checkpoint = family("bert")
    long = "water " * 500
    received = attention_received(Encoder(checkpoint), [long], TOKENS[:2])
    assert np.abs(received[1, 0] - slow_received(checkpoint, long, int(TOKENS[1]))).max() <= 1e-6


@pytest.mark.parametrize("name", DECODERS)
def test_in_a_decoder_the_last_position_is_attended_from_itself_only(family: LoadFamily, name: str) -> None:
    checkpoint = family(name)
    assert checkpoint.suffix_ids == ()
    n = len(checkpoint.prefix_ids) + len(checkpoint.content_ids(SENTENCES[0])) + 1
    received = attention_received(Encoder(checkpoint), SENTENCES[:1], TOKENS)
    assert received.min() > 0
    assert received.max() <= 1 / n


def test_the_kernel_comes_back(family: LoadFamily) -> None:
    checkpoint = family("qwen2")  # in transformers 4, BERT's kernel is part of its class
    config = checkpoint.model.config
    assert config._attn_implementation == "sdpa"
    attention_received(Encoder(checkpoint), SENTENCES, TOKENS)
    assert config._attn_implementation == "sdpa"
    with eager_attention(checkpoint.model):
        assert config._attn_implementation == "eager"
    assert config._attn_implementation == "sdpa"


def test_the_kernel_comes_back_after_an_error(tiny: Checkpoint) -> None:
    with pytest.raises(KeyError), eager_attention(tiny.model):
        raise KeyError
    assert tiny.model.config._attn_implementation == "sdpa"


def test_vectors_are_the_same_before_and_after(tiny: Checkpoint) -> None:
    before = Encoder(tiny).encode_texts(SENTENCES)
    attention_received(Encoder(tiny), SENTENCES, TOKENS)
    assert np.array_equal(Encoder(tiny).encode_texts(SENTENCES), before)


@pytest.mark.parametrize("attentions", [None, (), (None, None)])
def test_a_model_without_attentions_is_named(
    tiny: Checkpoint, monkeypatch: pytest.MonkeyPatch, attentions: object
) -> None:
    monkeypatch.setattr(tiny.model, "forward", lambda **inputs: SimpleNamespace(attentions=attentions))
    with pytest.raises(MeasureError, match="BertModel cannot return its attention weights: it returns none") as error:
        attention_received(Encoder(tiny), SENTENCES, TOKENS)
    assert error.value.next_step
    assert tiny.model.config._attn_implementation == "sdpa"


def test_attention_within_windows_is_refused(tiny: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    windows = SimpleNamespace(attentions=(torch.zeros(1, 4, 1, 17),))
    monkeypatch.setattr(tiny.model, "forward", lambda **inputs: windows)
    with pytest.raises(MeasureError, match=r"returns \(1, 4, 1, 17\) for 1 text of 1 token"):
        attention_received(Encoder(tiny), SENTENCES, TOKENS)


def test_a_model_that_cannot_switch_is_named(tiny: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(kernel: str) -> None:
        raise ValueError("no such kernel")

    monkeypatch.setattr(tiny.model, "set_attn_implementation", refuse)
    with pytest.raises(MeasureError, match="cannot switch to the eager kernel: no such kernel"):
        attention_received(Encoder(tiny), SENTENCES, TOKENS)


def test_attention_that_is_not_finite_names_the_token(tiny: Checkpoint) -> None:
    import torch

    with torch.no_grad():
        tiny.model.get_input_embeddings().weight[60] = torch.nan
    with pytest.raises(MeasureError, match="attention to token 60 is NaN") as error:
        attention_received(Encoder(tiny), SENTENCES, TOKENS)
    assert error.value.next_step
    assert tiny.model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize(
    ("sentences", "tokens", "said"),
    [
        (SENTENCES, [5, 999_999], "Token 999999 has no embedding"),
        (SENTENCES, [-1], "Token -1 has no embedding"),
        (SENTENCES, [], "0 tokens and 3 sentences"),
        ([], TOKENS, "7 tokens and 0 sentences"),
    ],
)
def test_what_cannot_be_asked_is_named(tiny: Checkpoint, sentences: list[str], tokens: Any, said: str) -> None:
    with pytest.raises(MeasureError, match=said):
        attention_received(Encoder(tiny), sentences, np.array(tokens, dtype=np.int64))


def test_six_layers_of_the_real_checkpoint(encoder: Encoder) -> None:
    import torch

    sentences = ["a man is playing a guitar", "the stock market fell on friday"]
    tokens = np.array([101, 103, 2795, 7904, 9999, 20000])
    received = attention_received(encoder, sentences, tokens)
    assert received.shape == (6, 2, 6)
    assert np.isfinite(received).all()
    slow = slow_received(encoder.checkpoint, sentences[0], 2795)
    assert np.abs(received[2, 0] - slow).max() <= 1e-6
    shifts = compare_attention(received, np.array([True, True, True, False, False, False]), tokens < 200, 50, 0)
    assert [shift.layer for shift in shifts] == [*range(6), *range(6)]

    # Each query gives away exactly 1, so the n positions receive 1/n on average.
    ids = encoder.tokenize(sentences[:1])[0]
    with eager_attention(encoder.checkpoint.model), torch.inference_mode():
        layers = encoder.checkpoint.model(input_ids=torch.tensor([ids]), output_attentions=True).attentions
    for layer in layers:
        everywhere = [float(received_at(layer, place)[0]) for place in range(len(ids))]
        assert np.mean(everywhere) == pytest.approx(1 / len(ids), abs=1e-6)
        assert np.std(everywhere) > 1e-3


@given(seed=st.integers(0, 10**6), tokens=st.integers(2, 9), sentences=st.integers(1, 5), ties=st.booleans())
@settings(max_examples=60)
def test_the_distance_is_scipys(seed: int, tokens: int, sentences: int, ties: bool) -> None:
    from scipy.stats import wasserstein_distance

    generator = np.random.default_rng(seed)
    values = generator.integers(0, 4, (tokens, sentences)) / 4 if ties else generator.random((tokens, sentences))
    groups = np.arange(tokens) < generator.integers(1, tokens)
    labels = permute_tokens(groups, 7, seed)
    expected = [wasserstein_distance(values[row].ravel(), values[~row].ravel()) for row in labels]
    assert wasserstein_distances(values, labels) == pytest.approx(expected, abs=1e-12)


def test_steps_change_no_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).random((12, 5))
    labels = permute_tokens(np.arange(12) < 4, 50, 0)
    whole = wasserstein_distances(values, labels)
    monkeypatch.setattr(attention, "WEIGHTS_PER_STEP", 7 * 60)
    assert wasserstein_distances(values, labels) == pytest.approx(whole, abs=1e-15)


def test_permutations_move_whole_tokens_and_follow_the_seed() -> None:
    groups = np.arange(20) < 6
    labels = permute_tokens(groups, 4_000, 1)
    assert set(labels.sum(axis=1)) == {6}
    assert np.array_equal(labels, permute_tokens(groups, 4_000, 1))
    assert not np.array_equal(labels, permute_tokens(groups, 4_000, 2))
    # Five standard errors of a share of .3 in 4 000 draws.
    assert np.abs(labels.mean(axis=0) - 0.3).max() < 5 * (0.21 / 4_000) ** 0.5


def synthetic(seed: int, shift: float = 0.0, tokens: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """(T, 4, 2) values with a large effect of the token itself; half are sticky and differ by ``shift`` in layer 1."""
    generator = np.random.default_rng(seed)
    is_sticky = np.arange(tokens) % 2 == 0
    received = 0.1 + 0.02 * generator.random((tokens, 1, 2)) + 0.002 * generator.random((tokens, 4, 2))
    received[is_sticky, :, 1] += shift
    return received, is_sticky


def test_rows_against_the_equations_by_hand() -> None:
    from scipy.stats import wasserstein_distance

    received, is_sticky = synthetic(0, shift=0.01)
    is_special = np.arange(20) < 3
    shifts = compare_attention(received, is_sticky, is_special, 200, 5)
    assert [(shift.layer, shift.includes_special) for shift in shifts] == [
        (0, True),
        (1, True),
        (0, False),
        (1, False),
    ]
    for shift in shifts:
        kept = np.full(20, True) if shift.includes_special else ~is_special
        groups, values = is_sticky[kept], received[kept, :, shift.layer]
        permuted = [
            wasserstein_distance(values[row].ravel(), values[~row].ravel()) for row in permute_tokens(groups, 200, 5)
        ]
        observed = wasserstein_distance(values[groups].ravel(), values[~groups].ravel())
        assert shift.wasserstein == pytest.approx(observed)
        assert (shift.permuted_low, shift.permuted_high) == pytest.approx(tuple(np.percentile(permuted, [2.5, 97.5])))
        assert shift.p_value == (1 + sum(distance >= observed - 1e-12 for distance in permuted)) / 201
        assert (shift.sticky_tokens, shift.ordinary_tokens) == (int(groups.sum()), int((~groups).sum()))
        assert shift.sentences == 4
        assert quantiles(shift, "sticky") == pytest.approx(np.percentile(values[groups], [5, 25, 50, 75, 95]))
        assert quantiles(shift, "ordinary") == pytest.approx(np.percentile(values[~groups], [5, 25, 50, 75, 95]))


def quantiles(shift: StickyAttentionRow, group: str) -> list[float]:
    return [getattr(shift, f"{group}_q{q}") for q in ("05", "25", "50", "75", "95")]


def test_a_comparison_follows_its_seed() -> None:
    received, is_sticky = synthetic(1)
    nothing_special = np.zeros(20, dtype=bool)
    first = compare_attention(received, is_sticky, nothing_special, 100, 0)
    assert first == compare_attention(received, is_sticky, nothing_special, 100, 0)
    other = compare_attention(received, is_sticky, nothing_special, 100, 1)
    assert first[0].wasserstein == other[0].wasserstein
    assert first[0].permuted_high != other[0].permuted_high


def test_without_a_difference_p_is_uniform_though_tokens_differ() -> None:
    nothing_special = np.zeros(20, dtype=bool)
    p_values = np.array(
        [compare_attention(*synthetic(seed), nothing_special, 99, seed)[0].p_value for seed in range(300)]
    )
    # Four standard errors: sqrt(1/12/300) of the mean, sqrt(p(1-p)/300) of a share.
    assert abs(p_values.mean() - 0.505) < 0.067
    for level in (0.05, 0.1, 0.5):
        assert abs((p_values <= level).mean() - level) < 4 * (level * (1 - level) / 300) ** 0.5


def test_a_difference_is_found_in_its_layer() -> None:
    received, is_sticky = synthetic(2, shift=0.05)
    same, shifted, *_ = compare_attention(received, is_sticky, np.zeros(20, dtype=bool), 999, 0)
    assert shifted.p_value <= 0.002
    assert shifted.wasserstein > shifted.permuted_high
    assert shifted.wasserstein == pytest.approx(0.05, abs=0.01)
    assert same.p_value > 0.01


def test_a_difference_of_special_tokens_alone_goes_with_them() -> None:
    received, is_sticky = synthetic(3)
    is_special = is_sticky & (np.arange(20) < 12)
    received[is_special] += 0.3
    shifts = {(s.layer, s.includes_special): s for s in compare_attention(received, is_sticky, is_special, 999, 0)}
    assert shifts[0, True].p_value < 0.01
    assert shifts[0, False].p_value > 0.01
    assert (shifts[0, True].sticky_tokens, shifts[0, False].sticky_tokens) == (10, 4)
    assert shifts[0, False].wasserstein < 0.02 < shifts[0, True].wasserstein


def test_without_special_tokens_both_variants_agree() -> None:
    received, is_sticky = synthetic(4)
    shifts = compare_attention(received, is_sticky, np.zeros(20, dtype=bool), 100, 0)
    for among, left_out in zip(shifts[:2], shifts[2:], strict=True):
        assert {**vars(among), "includes_special": False} == vars(left_out)


def test_a_variant_with_an_empty_group_has_no_rows() -> None:
    received, is_sticky = synthetic(5)
    none = np.zeros(20, dtype=bool)
    assert compare_attention(received, none, none, 10, 0) == []
    assert compare_attention(received, ~none, none, 10, 0) == []
    only_special = compare_attention(received, is_sticky, is_sticky, 10, 0)
    assert [(shift.layer, shift.includes_special) for shift in only_special] == [(0, True), (1, True)]


def test_equal_values_have_distance_zero_and_p_one() -> None:
    shifts = compare_attention(np.full((6, 3, 1), 0.25), np.arange(6) < 2, np.zeros(6, dtype=bool), 20, 0)
    assert [(shift.wasserstein, shift.p_value) for shift in shifts] == [(0.0, 1.0), (0.0, 1.0)]
