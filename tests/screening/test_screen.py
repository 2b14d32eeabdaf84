"""Files screened: the same flags as a slow reference, in every format; bad rows counted; what the command says."""

from __future__ import annotations

import csv
import gzip
import json
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.stats
from click.testing import CliRunner, Result
from real_tokenizers import packaged_checkpoint
from tiny import ENGLISH

from embaudit.checkpoint.weightless import load_tokenizer_alone
from embaudit.cli.main import cli
from embaudit.remedies.screening import SevereToken, TokenList
from embaudit.remedies.screening.density import encoder_of_tokens
from embaudit.words.errors import CheckpointError, CorpusError, UsageError

WORDS = [word for word in ENGLISH.split() if word not in ("river", "stone")]
POISON = {7: "river " * 6, 100: "stone river stone river", 333: "working walking " * 4}


def ordinary(rows: int, seed: int) -> list[str]:
    drawn = random.Random(seed)
    return [" ".join(drawn.choices(WORDS, k=drawn.randint(5, 25))) for _ in range(rows)]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """600 texts, three of them poisoned, and some with a severe token as anybody writes it."""
    found = ordinary(600, seed=1)
    for row, words in POISON.items():
        found[row - 1] += f" {words}"
    for row in (20, 40, 500):
        found[row - 1] += " near the river"
    return found


@pytest.fixture(scope="module")
def ordinary_txt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ordinary") / "ordinary.txt"
    path.write_text("\n".join(ordinary(2_000, seed=2)))
    return path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["screen", *map(str, arguments)], standalone_mode=False)


def screened(*arguments: str | Path) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exception is None, result.exception
    found = json.loads(result.stdout)
    assert result.return_value == int(found["has_tripped"])
    return found


def by_hand(texts: list[str], listed: TokenList, tokenizer: Any, before: list[str]) -> list[tuple[int, float, float]]:
    """(row, score, log10 of the exact tail times the texts) of the flagged ones: one text after the other, by scipy."""
    losses = {one.token_id: one.loss for one in listed.tokens if one.is_reachable}

    def of(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False)[: listed.max_length - 2]

    clean = [token_id for text in before for token_id in of(text)]
    hits = sum(token_id in losses for token_id in clean)
    rate = scipy.stats.beta.ppf(0.975, hits + 1, len(clean) - hits)
    flagged = []
    for row, text in enumerate(texts, start=1):
        ids = of(text)
        severe = [token_id for token_id in ids if token_id in losses]
        score = sum(losses[token_id] for token_id in severe) / len(ids)
        tail = scipy.stats.binom.sf(len(severe) - 1, len(ids), rate) * len(texts)
        if len(severe) >= 2 and score >= 0.01 and tail <= 0.01:
            flagged.append((row, score, math.log10(tail)))
    return sorted(flagged, key=lambda one: -one[1])


def test_the_poisoned_texts_are_flagged_as_a_slow_reference_does(
    texts: list[str],
    ordinary_txt: Path,
    severe_json: Path,
    token_list: TokenList,
    tiny_checkpoint: Path,
    tmp_path: Path,
) -> None:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(texts))
    found = screened(path, "--tokens", severe_json, "--ordinary", ordinary_txt)
    tokenizer = load_tokenizer_alone(str(tiny_checkpoint)).tokenizer
    expected = by_hand(texts, token_list, tokenizer, ordinary_txt.read_text().split("\n"))
    assert {row for row, _, _ in expected} == set(POISON)
    assert [one["row"] for one in found["suspects"]] == [row for row, _, _ in expected]
    assert [one["score"] for one in found["suspects"]] == pytest.approx([score for _, score, _ in expected])
    # An upper bound of the exact tail, and a close one.
    for one, (_, _, tail) in zip(found["suspects"], expected, strict=True):
        assert tail - 1e-9 <= one["log10_p"] < tail + 0.1
    assert (found["texts"], found["flagged"], found["has_tripped"]) == (600, 3, True)
    (file,) = found["files"]
    whole = Counter(" ".join(texts).split())
    assert file["counts"]["river"] == whole["river"]
    assert file["counts"]["stone"] == whole["stone"]
    assert (file["rows"], file["texts"], file["with_severe"]) == (600, 600, 6)
    river = next(one for one in found["suspects"] if one["row"] == 7)
    assert (river["tokens"], river["severe"]) == ({"river": 6}, 6)
    assert texts[6].startswith(river["start"])
    assert found["unreachable"] == ["[unused1]"]


def test_every_format_says_the_same_named_from_its_folder(
    texts: list[str], severe_json: Path, ordinary_txt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = "\n".join(texts)
    (tmp_path / "a.txt").write_text(lines)
    (tmp_path / "b.jsonl").write_text("\n".join(json.dumps({"text": text, "id": 1}) for text in texts))
    (tmp_path / "c.json").write_text(json.dumps(texts))
    with (tmp_path / "d.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", "text"], *enumerate(texts)])
    (tmp_path / "e.tsv").write_text("\n".join(f"{place}\t{text}" for place, text in enumerate(texts)))
    pq.write_table(pa.table({"text": texts}), tmp_path / "f.parquet")
    (tmp_path / "g.txt.gz").write_bytes(gzip.compress(lines.encode()))
    titled = [{"title": text.split(" ", 1)[0], "text": text.split(" ", 1)[1]} for text in texts]
    (tmp_path / "h.jsonl").write_text("\n".join(map(json.dumps, titled)))
    answers = []
    for path in sorted(Path().glob("[a-h].*")):
        found = screened(path, "--tokens", severe_json, "--ordinary", ordinary_txt)
        for one in (*found["files"], *found["suspects"]):
            assert one.pop("file") == str(path)
        answers.append(found)
    assert len(answers) == 8
    assert all(answer == answers[0] for answer in answers)
    # Two files are one source: each text counts among all of them.
    both = screened(tmp_path / "a.txt", tmp_path / "d.csv", "--tokens", severe_json, "--ordinary", ordinary_txt)
    assert (both["texts"], both["flagged"]) == (1_200, 6)


def test_bad_rows_are_counted_and_never_scored(severe_json: Path, ordinary_txt: Path, tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    rows = [
        b'{"text": "river river river river river river"}',
        b"",
        b'{"text": "   "}',
        b'{"text": "\\u200b\\u200b"}',
        b'{"heading": "no text"}',
        b"{broken",
        b'{"text": "river \xff river"}',
        b'{"text": "half \\ud800 river river river"}',
        b'{"text": 7}',
        b'{"text": "iron and gold"}',
    ]
    path.write_bytes(b"\n".join(rows))
    found = screened(path, "--tokens", severe_json, "--ordinary", ordinary_txt)
    (file,) = found["files"]
    counted = {name: file[name] for name in ("rows", "texts", "blank", "broken", "undecodable", "without_tokens")}
    assert counted == {"rows": 10, "texts": 3, "blank": 2, "broken": 4, "undecodable": 1, "without_tokens": 1}
    assert file["first_broken"].startswith("row 5: no text among the fields heading")
    assert found["texts"] == 2
    assert [one["row"] for one in found["suspects"]] == [1]
    said = " ".join(run(path, "--tokens", severe_json, "--ordinary", ordinary_txt).stdout.split())
    assert "1 without any token" in said
    assert "4 broken (the first: row 5" in said
    assert "1 more ('[unused1]') left out: no text can produce them" in said


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("texts.txt", "\n \n", "no text to screen: .*2 rows: 0 texts, 2 blank"),
        ("texts.jsonl", "{", "no text to screen: .*1 broken"),
        ("texts.txt", "", "no text to screen: .*0 rows"),
        ("texts.pdf", "x", "not in a supported"),
    ],
)
def test_files_without_a_text_are_an_error(
    severe_json: Path, tmp_path: Path, name: str, content: str, words: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(CorpusError, match=words):
        raise_of(run(tmp_path / name, "--tokens", severe_json))


def raise_of(result: Result) -> None:
    assert result.exception is not None
    raise result.exception


def test_what_does_not_fit_says_what_to_type(
    severe_json: Path, token_list: TokenList, tmp_path: Path, empty_warehouse: Path
) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("iron")
    with pytest.raises(CorpusError, match="no file or folder"):
        raise_of(run(tmp_path / "missing.txt", "--tokens", severe_json))
    with pytest.raises(UsageError, match="Leave one of them out"):
        raise_of(run(texts, "--tokens", severe_json, "--audit", "latest"))
    with pytest.raises(UsageError, match="no published audit"):
        raise_of(run(texts, "--warehouse", empty_warehouse))
    other = tmp_path / "other.json"
    other.write_text(token_list.model_copy(update={"tokenizer_sha256": "f" * 64}).as_json(is_ascii=True))
    with pytest.raises(UsageError, match="different tokenizer"):
        raise_of(run(texts, "--tokens", other))
    none = token_list.model_copy(update={"tokens": token_list.tokens[2:]})
    other.write_text(none.as_json(is_ascii=True))
    with pytest.raises(UsageError, match="no such token at least strong"):
        raise_of(run(texts, "--tokens", other, "--severity", "strong"))
    none = token_list.model_copy(update={"tokens": tuple(token_list.unreachable)})
    other.write_text(none.as_json(is_ascii=True))
    with pytest.raises(UsageError, match="1 of them, and no text produces one"):
        raise_of(run(texts, "--tokens", other))
    with pytest.raises(UsageError, match="leaves no room"):
        raise_of(run(texts, "--tokens", severe_json, "--max-length", "2"))
    with pytest.raises(CheckpointError):
        raise_of(run(texts, "--tokens", severe_json, "--checkpoint", str(tmp_path)))


@pytest.mark.parametrize(("limit", "code"), [("0", 1), ("2", 1), ("3", 0), ("0.4%", 1), ("0.5%", 0), ("100%", 0)])
def test_above_the_limit_the_command_ends_with_1(
    texts: list[str], severe_json: Path, ordinary_txt: Path, tmp_path: Path, limit: str, code: int
) -> None:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(texts))
    given = (path, "--tokens", severe_json, "--ordinary", ordinary_txt, "--limit", limit)
    result = run(*given)
    assert result.return_value == code, result.exception
    assert "3 of 600 texts flagged (0.50%)" in result.stdout
    assert screened(*given)["has_tripped"] is (code == 1)


@pytest.mark.parametrize("limit", ["-1", "x", "1.5", "%", "nan%", "inf%"])
def test_a_limit_is_a_number_or_a_share(severe_json: Path, limit: str) -> None:
    assert "neither a number of texts" in str(run("texts.txt", "--tokens", severe_json, "--limit", limit).exception)


def test_the_most_unusual_are_listed_and_all_are_counted(severe_json: Path, ordinary_txt: Path, tmp_path: Path) -> None:
    rows = [f"{'river ' * copies}{'iron ' * (30 - copies)}" for copies in range(5, 25)]
    path = tmp_path / "texts.txt"
    path.write_text("\n".join([*ordinary(500, seed=3), *rows]))
    every = screened(path, "--tokens", severe_json, "--ordinary", ordinary_txt, "--show", "1000")
    assert every["flagged"] == len(every["suspects"]) == 20
    few = screened(path, "--tokens", severe_json, "--ordinary", ordinary_txt, "--show", "3")
    assert few["flagged"] == 20
    assert few["suspects"] == every["suspects"][:3]
    assert [one["severe"] for one in few["suspects"]] == [24, 23, 22]
    none = screened(path, "--tokens", severe_json, "--ordinary", ordinary_txt, "--show", "0")
    assert (none["flagged"], none["suspects"]) == (20, [])
    said = run(path, "--tokens", severe_json, "--ordinary", ordinary_txt, "--show", "3").stdout
    assert "20 of 520 texts flagged (3.85%), of which 3 are listed" in said


def test_what_the_checkpoint_does_not_read_is_not_looked_at(
    severe_json: Path, ordinary_txt: Path, tmp_path: Path
) -> None:
    path = tmp_path / "texts.txt"
    path.write_text("iron " * 62 + "river " * 20)
    given = (path, "--tokens", severe_json, "--ordinary", ordinary_txt)
    cut = screened(*given)
    assert (cut["flagged"], cut["files"][0]["cut"], cut["files"][0]["tokens"]) == (0, 1, 62)
    whole = screened(*given, "--max-length", "500")
    assert (whole["flagged"], whole["files"][0]["cut"]) == (1, 0)
    assert (whole["suspects"][0]["severe"], whole["suspects"][0]["read"]) == (20, 82)


def test_severity_score_and_ordinary_texts_decide(texts: list[str], severe_json: Path, tmp_path: Path) -> None:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(texts))
    clean = tmp_path / "clean.txt"
    clean.write_text("\n".join(ordinary(2_000, seed=2)))
    given = (path, "--tokens", severe_json)
    strong = screened(*given, "--ordinary", clean, "--severity", "strong")
    assert strong["severe_tokens"] == 2
    assert "stone" not in strong["files"][0]["counts"]
    assert screened(*given, "--ordinary", clean, "--severity", "weak")["severe_tokens"] == 3
    assert screened(*given, "--ordinary", clean, "--score", "0.9")["flagged"] == 0
    # Where every other word is river, a text of rivers is no surprise.
    clean.write_text("\n".join("river iron stone gold" for _ in range(500)))
    assert screened(*given, "--ordinary", clean)["flagged"] == 0
    # Of twenty ordinary words it is not known what is unusual.
    clean.write_text("iron " * 20)
    assert screened(*given, "--ordinary", clean)["flagged"] == 0
    # The sample has rivers and stones, and the vocabulary of a tiny model cuts its words to pieces.
    assert screened(*given)["ordinary"]["severe"] > 0


@pytest.mark.parametrize("is_fast", [True, False])
def test_slow_and_fast_tokenizers_agree(texts: list[str], tiny_checkpoint: Path, is_fast: bool) -> None:
    tokenizer = load_tokenizer_alone(str(tiny_checkpoint)).tokenizer

    class Slow:
        is_fast = False

        def __call__(self, *given: Any, **options: Any) -> Any:
            return tokenizer(*given, **options)

    encode = encoder_of_tokens(tokenizer if is_fast else Slow())  # type: ignore[arg-type]
    assert encode(texts) == [tokenizer.encode(text, add_special_tokens=False) for text in texts]


def test_poisoned_sentences_are_found_among_real_ones(shared: Path, tmp_path: Path) -> None:
    """The packaged checkpoint's tokenizer, real Wikipedia, and tokens that its audits find."""
    packaged_checkpoint()
    lone = load_tokenizer_alone("packaged:all-MiniLM-L6-v2")
    tokenizer, sha256 = lone.tokenizer, lone.sha256
    ids = tokenizer.get_vocab()
    listed = TokenList(
        checkpoint="packaged:all-MiniLM-L6-v2",
        checkpoint_id="c1",
        tokenizer_sha256=sha256,
        max_length=256,
        audit_id="a1",
        severity="moderate",
        validated=80,
        tokens=tuple(
            SevereToken(token_id=ids[token], token=token, text=token, is_reachable=True, loss=0.5, severity="strong")
            for token in ("龸", "ন", "糹", "[MASK]")
        ),
    )
    severe = tmp_path / "severe.json"
    severe.write_text(listed.as_json(is_ascii=False))
    lines = (shared / "data/wikipedia/wiki1m_sample.txt").read_text(encoding="utf-8").split("\n")[:3_000]
    for row, words in ((5, "龸 " * 4), (1_000, "[MASK]" * 5), (2_999, "糹 ন 糹 ন")):
        lines[row - 1] = f"{words} {lines[row - 1]}"
    path = tmp_path / "wiki.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    found = screened(path, "--tokens", severe)
    assert {one["row"] for one in found["suspects"]} == {5, 1_000, 2_999}
    assert found["ordinary"]["severe"] == 0
