"""Parquet files in a bucket, behind an address, and in a data set of the hub: read as files beside the program are."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fake_hub import COMMIT, FakeHub, json_lines
from s3_server import SECRET, Bucket
from some_rows import mostly_slow

from embaudit.stores.opened import open_store
from embaudit.stores.store import Store
from embaudit.words.errors import CorpusError, UsageError

VECTORS = np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32)
TEXTS = [f"text {row}" for row in range(len(VECTORS))]


def parquet(rows: slice) -> bytes:
    buffer = io.BytesIO()
    table = pa.table({"id": list(range(300))[rows], "text": TEXTS[rows], "vector": VECTORS[rows].tolist()})
    pq.write_table(table, buffer, row_group_size=50)
    return buffer.getvalue()


def check(store: Store) -> None:
    for _ in range(2):
        batches = list(store.batches())
        found = np.concatenate([next(iter(batch.vectors.values()))[1] for batch in batches])
        np.testing.assert_allclose(found, VECTORS, atol=1e-6)
        assert [text for batch in batches for text in batch.texts or ()] == TEXTS
    assert store.rows in (None, len(VECTORS))


def test_a_bucket_is_read_by_file_folder_and_pattern(bucket: Bucket) -> None:
    system, root = bucket.store(), bucket.address.removeprefix("s3://")
    system.pipe(f"{root}/index/part-0.parquet", parquet(slice(0, 120)))
    system.pipe(f"{root}/index/deep/part-1.parquet", parquet(slice(120, 300)))
    system.pipe(f"{root}/index/readme.txt", b"no rows")
    system.pipe(f"{root}/whole.parquet", parquet(slice(None)))
    before = bucket.objects()

    check(open_store(f"{bucket.address}/whole.parquet"))
    check(open_store(f"{bucket.address}/who*.parquet"))
    folder = open_store(f"{bucket.address}/index")
    assert sum(batch.rows for batch in folder.batches()) == folder.rows == 300
    assert bucket.objects() == before


def test_a_file_that_is_written_again_meanwhile_is_named(bucket: Bucket) -> None:
    system, root = bucket.store(), bucket.address.removeprefix("s3://")
    system.pipe(f"{root}/a.parquet", parquet(slice(0, 100)))
    store = open_store(f"{bucket.address}/a.parquet")
    system.pipe(f"{root}/a.parquet", parquet(slice(0, 200)))

    with pytest.raises((UsageError, CorpusError), match=r"changed while it was read|cannot be read"):
        list(store.batches())


@pytest.mark.parametrize("name", mostly_slow(["missing.parquet", "nothing-here", "damaged.parquet"], 1))
def test_what_is_not_there_or_damaged_is_named_without_secrets(name: str, bucket: Bucket) -> None:
    bucket.store().pipe(f"{bucket.address.removeprefix('s3://')}/damaged.parquet", parquet(slice(None))[:500])

    with pytest.raises((CorpusError, UsageError)) as caught:
        open_store(f"{bucket.address}/{name}")

    assert name in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_file_behind_an_address_and_a_data_set_of_the_hub(hub: FakeHub) -> None:
    hub.repositories["org/vectors"] = {"data/train-00000-of-00001.parquet": parquet(slice(None))}

    check(open_store(f"{hub.endpoint}/datasets/org/vectors/resolve/main/data/train-00000-of-00001.parquet"))
    data = open_store("hub:org/vectors")
    check(data)
    assert data.shown == f"hub:org/vectors@{COMMIT[:12]}"
    hub.requests.clear()
    check(open_store(f"hub:org/vectors@{COMMIT}"))
    assert [request for request in hub.requests if "/resolve/" in request] == []


def test_a_data_set_in_lines_is_read_and_several_files_are_asked_about(hub: FakeHub) -> None:
    lines = json_lines([{"text": text, "vector": row.tolist()} for text, row in zip(TEXTS, VECTORS, strict=True)])
    hub.repositories["org/lines"] = {"train.jsonl": lines}
    hub.repositories["org/parts"] = {"train-0.jsonl": lines, "train-1.jsonl": lines}

    check(open_store("hub:org/lines"))
    with pytest.raises(UsageError, match="2 files that are not read together"):
        open_store("hub:org/parts")
    with pytest.raises(CorpusError, match="org/none"):
        open_store("hub:org/none")


def test_a_folder_of_many_files_is_one_table(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"part-{number:02}.parquet").write_bytes(parquet(slice(10 * number, 10 * number + 10)))

    check(open_store(tmp_path))
