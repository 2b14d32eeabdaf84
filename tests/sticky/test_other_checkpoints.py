"""The scan and the validation on what is no mean-pooled BERT: other poolings, tokenizers and special tokens.

Models are random and tiny, so that no similarity means anything here: what is tested is that every step runs, puts the
copies where they belong, and gives what each sentence encoded by itself gives. Tokenizers are the real ones, whose
vocabularies take seconds to read, and for `make test` small ones.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from some_rows import mostly_slow
from tiny import tiny_bert

from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint
from embaudit.checkpoint.vocabulary import read_vocabulary
from embaudit.measures.sticky import StickySettings
from embaudit.measures.sticky.baseline import sum_entries
from embaudit.measures.sticky.effects import measure_effects
from embaudit.measures.sticky.insertion import SentenceSet, make_draw
from embaudit.measures.sticky.moments import PROTOCOLS, Moments, insert_tokens, score
from embaudit.measures.sticky.plan import (
    choose_controls,
    choose_shortlists,
    choose_tokens,
    eligible_tokens,
    shortlist_length,
)
from embaudit.measures.sticky.points import Points, every_against_every
from embaudit.measures.sticky.verdicts import Threshold, adaptive_threshold, validation_value
from embaudit.words.errors import MeasureError

pytestmark = pytest.mark.usefixtures("one_thread")

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    LoadTokenizer = Callable[[str], PreTrainedTokenizerBase]
    Row = dict[str, Any]

COPIES = 8
TOKENS = 12
DRAWS = range(3)
D, POSITIONS = 16, 64
SENTENCES = [
    "a man is playing a guitar",
    "someone plays the guitar",
    "the stock market fell on friday",
    "shares dropped sharply at the end of the week",
    "a cat sleeps on the sofa",
    "how do i install the printer driver",
    "the river floods its banks every spring",
    "two dogs run across a field of snow",
    "she wrote a letter to the mayor",
    "nobody answered the telephone",
    "the soup needs more salt",
    "trains to the coast leave at noon",
    "he forgot the name of the hotel",
    "an old church stands on the hill",
    "winter came early in the mountains",
    "the court postponed its decision",
    "children sang in the school hall",
    "the bridge was closed for repairs",
    "gold prices rose for a third day",
    "a painter lives above the bakery",
    "the lake was frozen until march",
    "fresh bread is sold on saturdays",
    "the museum opens at ten",
    "ships wait outside the harbour",
]
SCORING = SentenceSet(tuple(SENTENCES[:3]), tuple(SENTENCES[3:9]))
VALIDATION = SentenceSet(tuple(SENTENCES[9:17]), tuple(SENTENCES[17:]))


@dataclass(frozen=True)
class Kind:
    """One kind of checkpoint: its tokenizer, its pooling, the special tokens before and behind a text."""

    tokenizer: str
    pooling: str
    before: tuple[str, ...]
    behind: tuple[str, ...]


KINDS = {
    "bert-tiny": Kind("tiny", "cls", ("[CLS]",), ("[SEP]",)),
    "bert-cls": Kind("bert-base-uncased", "cls", ("[CLS]",), ("[SEP]",)),
    "roberta-mean": Kind("roberta-base", "mean", ("<s>",), ("</s>",)),
    "gpt2-last": Kind("gpt2", "lasttoken", (), ()),
    "llama-last": Kind("gpt2", "lasttoken", (), ()),
    "t5-mean": Kind("t5-small", "mean", (), ("</s>",)),
    "albert-mean": Kind("albert", "mean", ("[CLS]",), ("[SEP]",)),
}


every_kind = mostly_slow(KINDS, ("bert-tiny",))


def build_model(kind: str, rows: int) -> PreTrainedModel:
    """A random model of a family with so many rows in its embedding matrix."""
    import torch
    import transformers as t

    sizes = {"vocab_size": rows, "hidden_size": D, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 32, "max_position_embeddings": POSITIONS}
    family = kind.partition("-")[0]
    model: PreTrainedModel
    if family == "bert":
        model = t.BertModel(t.BertConfig(**sizes), add_pooling_layer=False)
    elif family == "roberta":
        model = t.RobertaModel(t.RobertaConfig(**sizes, pad_token_id=1), add_pooling_layer=False)
    elif family == "gpt2":
        model = t.GPT2Model(t.GPT2Config(vocab_size=rows, n_embd=D, n_layer=2, n_head=2, n_positions=POSITIONS))
    elif family == "llama":
        ends = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
        model = t.LlamaModel(t.LlamaConfig(**sizes, **ends))
    elif family == "t5":
        config = t.T5Config(vocab_size=rows, d_model=D, d_kv=8, d_ff=32, num_layers=2, num_heads=2)
        model = t.T5EncoderModel(config)
    else:
        model = t.AlbertModel(t.AlbertConfig(**sizes, embedding_size=8))
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            # Wide enough that different texts get clearly different vectors. Wider ones multiply float32's rounding,
            # which is another one on every kind of CPU, to more than the millionth that the tests allow.
            if parameter.dim() == 2:
                parameter.normal_(0.0, 0.3, generator=generator)
    return model


def save(folder: Path, kind: str, tokenizer: PreTrainedTokenizerBase, pooling: str, rows: int) -> Path:
    """A folder in the sentence-transformers layout: tokenizer, model, pooling."""
    tokenizer.save_pretrained(folder)
    build_model(kind, rows).save_pretrained(folder)
    (folder / "1_Pooling").mkdir()
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    entries = [
        {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{name}"}
        for n, (path, name) in enumerate(modules)
    ]
    (folder / "modules.json").write_text(json.dumps(entries), "utf-8")
    config = {"embedding_dimension": D, "pooling_mode": pooling}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(config), "utf-8")
    return folder


def load(folder: Path, **options: Any) -> Checkpoint:
    return load_checkpoint(str(folder), LoadOptions(device="cpu", **options))


@dataclass(frozen=True)
class Audited:
    """A checkpoint with its vocabulary, and the draws and anchors of the search and of the validation."""

    kind: Kind
    checkpoint: Checkpoint
    tokens: list[Row]
    token_ids: np.ndarray
    u: float
    scan: Points
    validation: Points

    @property
    def encoder(self) -> Encoder:
        return Encoder(self.checkpoint)

    @cached_property
    def scanned(self) -> Moments:
        return insert_tokens(self.encoder, self.scan, self.token_ids, DRAWS)

    @cached_property
    def validated(self) -> Moments:
        return insert_tokens(self.encoder, self.validation, self.token_ids, range(8))


def prepared(checkpoint: Checkpoint, u: float = 2.0, chosen: SentenceSet = SCORING, groups: int = 2) -> Points:
    return every_against_every(Encoder(checkpoint), chosen.draws, chosen.anchors, u, COPIES, 0, groups)


def read_tokens(checkpoint: Checkpoint) -> list[Row]:
    return [asdict(entry) for entry in read_vocabulary(checkpoint.tokenizer, checkpoint.vocabulary_size)]


def audit(kind: Kind, checkpoint: Checkpoint, tokens: list[Row]) -> Audited:
    """What the tasks do before the scan, on a few sentences and tokens: three draws, one for each operator."""
    token_ids = choose_tokens(tokens, None, 3, TOKENS, seed=1).token_ids
    # Between the similarities of the sample: random weights put the tokens' own u anywhere.
    u = prepared(checkpoint, chosen=VALIDATION).origin
    return Audited(
        kind, checkpoint, tokens, token_ids, u, prepared(checkpoint, u), prepared(checkpoint, u, VALIDATION, 4)
    )


@pytest.fixture(scope="module")
def folder_of(real_tokenizer: LoadTokenizer, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a kind's model, built once."""

    def small_tokenizer() -> PreTrainedTokenizerBase:
        from tokenizers.decoders import WordPiece
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(tiny_bert(tmp_path_factory.mktemp("tokenizer") / "bert"))
        tokenizer.backend_tokenizer.decoder = WordPiece()
        return tokenizer

    @cache
    def folder(name: str) -> Path:
        tokenizer = small_tokenizer() if name == "bert-tiny" else real_tokenizer(KINDS[name].tokenizer)
        # Real T5 matrices are padded to 32 128 rows; the other kinds have one row a token.
        rows = 32_128 if name == "t5-mean" else len(tokenizer)
        return save(tmp_path_factory.mktemp("other") / name, name, tokenizer, KINDS[name].pooling, rows)

    return folder


@pytest.fixture(scope="module")
def tokens_of(folder_of: Callable[[str], Path]) -> Callable[[str], list[Row]]:
    """The vocabulary by a kind's saved and loaded tokenizer, read once for each tokenizer."""
    kind_with = {kind.tokenizer: name for name, kind in KINDS.items()}
    read = cache(lambda tokenizer: read_tokens(load(folder_of(kind_with[tokenizer]))))
    return lambda name: read(KINDS[name].tokenizer)


@pytest.fixture(scope="module", params=every_kind)
def audited(
    request: pytest.FixtureRequest, folder_of: Callable[[str], Path], tokens_of: Callable[[str], list[Row]]
) -> Audited:
    return audit(KINDS[request.param], load(folder_of(request.param)), tokens_of(request.param))


def alone(checkpoint: Checkpoint, pooling: str, ids: list[int]) -> np.ndarray:
    """The unit vector of one sequence, from the bare model and the pooling's definition."""
    import torch

    with torch.inference_mode():
        hidden = checkpoint.model(input_ids=torch.tensor([ids])).last_hidden_state[0].double().numpy()
    vector = {"cls": hidden[0], "lasttoken": hidden[-1], "mean": hidden.mean(axis=0)}[pooling]
    return vector / np.linalg.norm(vector)


def inserted_by_hand(checkpoint: Checkpoint, sentence: str, token: int, operator: str) -> list[int]:
    """The tokenizer's own encoding of the sentence, with the copies put inside its special tokens."""
    whole = list(checkpoint.tokenizer(sentence)["input_ids"])
    first, last = len(checkpoint.prefix_ids), len(whole) - len(checkpoint.suffix_ids)
    if operator == "random":
        return make_draw(checkpoint, sentence, "random", COPIES, 0).insert(np.array([token]))[0].tolist()
    at = first if operator == "prefix" else last
    return [*whole[:at], *[token] * COPIES, *whole[at:]]


def test_copies_stand_inside_the_special_tokens(audited: Audited) -> None:
    checkpoint, kind = audited.checkpoint, audited.kind
    token = int(audited.token_ids[0])
    name, sentence = checkpoint.tokenizer.convert_ids_to_tokens(token), SENTENCES[0]
    rows = {
        operator: make_draw(checkpoint, sentence, operator, COPIES, 0).insert(np.array([token]))[0].tolist()
        for operator in ("prefix", "suffix", "random")
    }
    assert rows["prefix"] == inserted_by_hand(checkpoint, sentence, token, "prefix")
    assert rows["suffix"] == inserted_by_hand(checkpoint, sentence, token, "suffix")
    for ids in rows.values():
        strings = checkpoint.tokenizer.convert_ids_to_tokens(ids)
        assert tuple(strings[: len(kind.before)]) == kind.before
        assert tuple(strings[len(strings) - len(kind.behind) :]) == kind.behind
        assert strings.count(name) == COPIES
        content = [i for i in ids if i != token][len(kind.before) : len(ids) - COPIES - len(kind.behind)]
        assert checkpoint.tokenizer.decode(content).strip() == sentence
    # Behind the sentence, and in front of the end token where there is one.
    ending = checkpoint.tokenizer.convert_ids_to_tokens(rows["suffix"])[-COPIES - len(kind.behind) :]
    assert ending == [name] * COPIES + list(kind.behind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [name for name in KINDS if name != "bert-tiny"])
def test_prompts_are_those_of_sentence_transformers_and_copies_stand_behind_them(
    kind: str, folder_of: Callable[[str], Path], tmp_path: Path
) -> None:
    """With real tokenizers, in which a prompt's last space or sign may merge with a text's first one."""
    sentence_transformers = pytest.importorskip("sentence_transformers", reason="compares with sentence-transformers")
    folder = Path(shutil.copytree(folder_of(kind), tmp_path / kind))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 40}')
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    texts = [*SENTENCES[:3], "1923", " spaced", '"quoted"', "(a) b", "ice " * 60]
    for prompt, is_pooled in (("query: ", True), ("Instruct: find it\nQuery:", False), ("search_document: ", False)):
        (folder / "1_Pooling" / "config.json").write_text(json.dumps({**pooling, "include_prompt": is_pooled}))
        declared = {"prompts": {"own": prompt}, "default_prompt_name": "own"}
        (folder / "config_sentence_transformers.json").write_text(json.dumps(declared))
        model = sentence_transformers.SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        # One text at a time, since GPT-2 has no token to pad with; it asks for one all the same.
        model.tokenizer.pad_token = model.tokenizer.pad_token or "!"
        expected = model.encode(texts, batch_size=1, show_progress_bar=False)
        checkpoint = load(folder)
        np.testing.assert_allclose(Encoder(checkpoint).encode_texts(texts), expected, atol=1e-5)
        token, head = checkpoint.content_ids("ice")[-1], [*checkpoint.prefix_ids, *checkpoint.prompt.ids]
        for text in texts:
            draw = make_draw(checkpoint, text, "prefix", COPIES, 0)
            row = draw.insert(np.array([token]))[0].tolist()
            assert row[: len(head) + COPIES] == [*head, *[token] * COPIES]
            assert [*head, *row[len(head) + COPIES :]] == list(draw.baseline)
            assert len(row) <= 40
            behind = checkpoint.tokenizer.decode(draw.baseline[len(head) :], skip_special_tokens=True)
            assert text.replace(" ", "").startswith(behind.replace(" ", "")), "all of the text, and no more"


@pytest.mark.parametrize(("purpose", "chosen"), [("scan", SCORING), ("validation", VALIDATION)])
def test_sums_are_those_of_each_sentence_by_itself(audited: Audited, purpose: str, chosen: SentenceSet) -> None:
    checkpoint, pooling = audited.checkpoint, audited.kind.pooling
    points = getattr(audited, purpose)
    moments = {"scan": audited.scanned, "validation": audited.validated}[purpose]
    draws = range(len(chosen.draws))
    alone_first = [insert_tokens(Encoder(checkpoint, 1), points, audited.token_ids[t : t + 1], draws) for t in range(2)]
    assert np.abs(moments.values[:2] - np.concatenate([one.values for one in alone_first])).max() <= 1e-5
    anchors = np.array([alone(checkpoint, pooling, checkpoint.tokenizer(one)["input_ids"]) for one in chosen.anchors])
    for place, (sentence, draw) in enumerate(zip(chosen.draws, points.draws, strict=True)):
        plain = alone(checkpoint, pooling, checkpoint.tokenizer(sentence)["input_ids"])
        assert np.abs(points.before[place] - anchors @ plain).max() <= 1e-6
        for t, token in enumerate(audited.token_ids[:2].tolist()):
            vector = alone(checkpoint, pooling, inserted_by_hand(checkpoint, sentence, token, draw.operator))
            by_group = moments.of_groups("y")[t, place]
            expected = [(anchors @ vector - points.origin)[points.groups == g].sum() for g in range(len(by_group))]
            assert by_group == pytest.approx(expected, abs=1e-5)


@pytest.mark.slow
def test_scores_are_finite_and_tell_tokens_apart(audited: Audited) -> None:
    scores = score(audited.scan, audited.scanned)
    for values in (scores.pull, scores.slope):
        assert np.isfinite(values).all()
        assert np.ptp(values) > 1e-3


def test_effects_and_u_are_finite(audited: Audited) -> None:
    candidates = audited.token_ids
    controls = choose_controls(audited.tokens, candidates, 10, seed=0)
    tokens = np.concatenate([candidates, controls])
    moments = insert_tokens(audited.encoder, audited.validation, tokens, range(8))
    is_control = np.arange(len(tokens)) >= len(candidates)
    for effect in measure_effects(audited.validation, moments, is_control, 100, 0):
        # An interval that misses its value is none: a tiny model's focal points are far from certain.
        interval = ("focal_low", "focal_high") if effect.focal_low is None else ()
        numbers = {
            name: value for name, value in asdict(effect).items() if name not in ("sticks_to", "severity", *interval)
        }
        assert None not in numbers.values()
        assert np.isfinite(list(numbers.values())).all(), numbers
        assert (effect.sticks_to is None) == (effect.focal_low is None)
    strings = [audited.tokens[token_id]["token"] for token_id in candidates]
    means = sum_entries(audited.encoder, candidates.tolist(), strings) / len(strings)
    assert all(0 <= mean @ mean <= 1 + 1e-6 for mean in means)


@pytest.mark.slow
def test_under_last_token_pooling_the_copies_are_what_is_served(folder_of: Callable[[str], Path]) -> None:
    """Appended copies stand last where there is no end token: the vector is then that of a copy."""
    import torch

    checkpoint = load(folder_of("gpt2-last"))
    draw = make_draw(checkpoint, SENTENCES[0], "suffix", COPIES, 0)
    ids = torch.from_numpy(draw.insert(np.array([262, 1000])))
    with torch.inference_mode():
        at_last_copy = checkpoint.model(input_ids=ids).last_hidden_state[:, -1]
    served = Encoder(checkpoint).encode_dense(ids)
    assert (ids[:, -1] == torch.tensor([262, 1000])).all()
    assert torch.allclose(served, at_last_copy, atol=1e-6)


@pytest.mark.parametrize("name", every_kind)
def test_one_token_of_content_is_the_least(name: str, folder_of: Callable[[str], Path]) -> None:
    """Eight copies, the family's special tokens and one token fit; in one less nothing does, and both steps say so."""
    special = len(KINDS[name].before) + len(KINDS[name].behind)
    least = load(folder_of(name), max_length=COPIES + special + 1)
    points = prepared(least)
    assert [len(draw.baseline) for draw in points.draws] == [special + 1] * 3
    assert np.isfinite(insert_tokens(Encoder(least), points, np.array([200, 210]), DRAWS).values).all()
    short = load(folder_of(name), max_length=COPIES + special)
    with pytest.raises(
        MeasureError, match=rf"8 copies .* no room for a sentence in {COPIES + special} tokens"
    ) as caught:
        prepared(short)
    assert "--max-length" in caught.value.next_step


def test_no_point_below_u(audited: Audited) -> None:
    lowest = float(audited.validation.before.min())
    with pytest.raises(MeasureError, match=rf"No sentence pair lies below u .* is {lowest:.4f}") as caught:
        prepared(audited.checkpoint, lowest - 1e-3, VALIDATION)
    assert "unrelated sentences" in caught.value.next_step


@pytest.mark.slow
def test_rows_of_the_matrix_without_a_token_are_never_scanned(
    folder_of: Callable[[str], Path], tokens_of: Callable[[str], list[Row]]
) -> None:
    """T5's matrix has 28 rows more than its tokenizer has tokens."""
    checkpoint, tokens = load(folder_of("t5-mean")), tokens_of("t5-mean")
    assert len(tokens) == 32_128
    eligible = eligible_tokens(tokens)
    assert eligible.max() < 32_100
    assert choose_controls(tokens, eligible[:10], 10**6, seed=0).max() < 32_100
    # They could be inserted all the same: an id needs an embedding and no string.
    points = prepared(checkpoint)
    assert np.isfinite(insert_tokens(Encoder(checkpoint), points, np.array([32_127]), [0]).values).all()


@pytest.mark.slow
def test_tokens_without_a_row_are_not_scanned_and_named_if_they_are(
    real_tokenizer: LoadTokenizer, tmp_path: Path
) -> None:
    """A matrix cut to 50 000 of RoBERTa's 50 265 tokens; <mask> is among the last, and stands in no text."""
    checkpoint = load(save(tmp_path / "cut", "roberta-mean", real_tokenizer("roberta-base"), "mean", 50_000))
    tokens = read_tokens(checkpoint)
    assert [row["token"] for row in tokens if row["category"] == "special"] == ["<s>", "<pad>", "</s>", "<unk>"]
    eligible = eligible_tokens(tokens)
    assert eligible.max() == 49_999
    points = prepared(checkpoint)
    assert np.isfinite(insert_tokens(Encoder(checkpoint), points, eligible[-3:], DRAWS).values).all()
    with pytest.raises(MeasureError, match=r"token 50000, but .* for only 50000 tokens"):
        insert_tokens(Encoder(checkpoint), points, np.array([500, 50_000]), [0])


@pytest.mark.slow
def test_ids_that_cannot_be_decoded_are_scanned_like_any_other(
    folder_of: Callable[[str], Path], tokens_of: Callable[[str], list[Row]]
) -> None:
    """Parts of characters in a byte-level vocabulary: no text of their own, and reachable inside a longer one."""
    checkpoint, tokens = load(folder_of("gpt2-last")), tokens_of("gpt2-last")
    pieces = [row["token_id"] for row in tokens if row["category"] == "undecodable" and row["is_reachable"]]
    assert len(pieces) == 331
    assert set(pieces) <= set(eligible_tokens(tokens).tolist())
    assert not set(pieces) & set(choose_controls(tokens, np.array([]), 10**6, seed=0).tolist())
    points = prepared(checkpoint)
    scores = score(points, insert_tokens(Encoder(checkpoint), points, np.array(pieces[:20]), DRAWS))
    assert np.isfinite(scores.slope).all()


@pytest.mark.slow
def test_added_tokens_are_scanned_under_their_own_name(shared: Path, tmp_path: Path) -> None:
    """A special and an ordinary one, the second with a space in it, which no base vocabulary of BERT could have."""
    from tokenizers import AddedToken
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(shared / "data" / "tokenizers" / "bert-base-uncased")
    tokenizer.add_tokens([AddedToken("<sep>", special=True), AddedToken("two words")])
    checkpoint = load(save(tmp_path / "added", "bert-cls", tokenizer, "cls", 30_524))
    tokens = read_tokens(checkpoint)
    assert [(row["token"], row["category"], row["origin"]) for row in tokens[-2:]] == [
        ("<sep>", "special", "special"),
        ("two words", "ok", "word"),
    ]
    assert {30_522, 30_523} <= set(eligible_tokens(tokens).tolist())
    draw = make_draw(checkpoint, "these two words stand there", "suffix", COPIES, 0)
    assert list(draw.baseline).count(30_523) == 1
    assert draw.insert(np.array([30_523]))[0].tolist().count(30_523) == COPIES + 1
    assert np.isfinite(Encoder(checkpoint).encode_dense(_tensor(draw.insert(np.array([30_522, 30_523]))))).all()


def test_a_tokenizer_without_any_special_token(tmp_path: Path) -> None:
    """256 bytes and a few merges: no cls, sep, pad, unk or end; everything can be encoded and little of it decoded."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("a", "n")]
    vocabulary = {token: n for n, token in enumerate([*alphabet, *(a + b for a, b in merges)])}
    backend = Tokenizer(models.BPE(vocabulary, merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)
    assert (tokenizer.unk_token, tokenizer.cls_token, tokenizer.sep_token, tokenizer.pad_token) == (None,) * 4

    checkpoint = load(save(tmp_path / "bare", "llama-last", tokenizer, "lasttoken", len(vocabulary)))
    assert (checkpoint.prefix_ids, checkpoint.suffix_ids) == ((), ())
    audited = audit(Kind("", "lasttoken", (), ()), checkpoint, read_tokens(checkpoint))
    assert "special" not in {row["category"] for row in audited.tokens}
    assert np.isfinite(score(audited.scan, audited.scanned).slope).all()
    candidates = np.concatenate([audited.token_ids, choose_controls(audited.tokens, audited.token_ids, 5, seed=0)])
    validated = insert_tokens(audited.encoder, audited.validation, candidates, range(8))
    effects = measure_effects(audited.validation, validated, np.arange(len(candidates)) >= TOKENS, 50, 0)
    assert np.isfinite([effect.loss for effect in effects]).all()
    beyond = len(vocabulary)
    with pytest.raises(MeasureError, match=rf"token {beyond}, but .* for only {beyond} tokens"):
        insert_tokens(audited.encoder, audited.scan, np.array([5, beyond]), [0])


def test_a_shortlist_longer_than_the_tokens_that_got_all_draws(audited: Audited) -> None:
    """Two per cent of 1 000 scanned tokens are twenty; the twelve that got all draws go on, without a threshold."""
    scores = score(audited.scan, audited.scanned)
    listed = shortlist_length(StickySettings(shortlist_share=0.02), 1_000)
    shortlists = choose_shortlists(audited.token_ids, scores, listed)
    assert shortlists == dict.fromkeys(PROTOCOLS, audited.token_ids.tolist())
    effects = measure_effects(audited.validation, audited.validated, np.arange(TOKENS) % 2 == 0, 50, 0)
    for protocol in PROTOCOLS:
        values = np.array([validation_value(protocol, effect) for effect in effects])
        threshold = Threshold(protocol, adaptive_threshold(values, above=protocol == "definition"), len(values))
        assert threshold.value is None
        assert {threshold.is_outlier(effect) for effect in effects} == {"no_threshold"}


def test_no_ordinary_token_is_left_to_compare_with(audited: Audited) -> None:
    everything = np.array([row["token_id"] for row in audited.tokens])
    with pytest.raises(MeasureError, match="no ordinary word or sub-word to compare"):
        choose_controls(audited.tokens, everything, 10, seed=0)


def _tensor(ids: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(ids)
