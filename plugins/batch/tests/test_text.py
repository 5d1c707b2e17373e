"""Text files have the same rows however they are cut."""

from __future__ import annotations

import csv
import io
import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tritonpy_batch import JobFailed
from tritonpy_batch.inputs import list_files
from tritonpy_batch.inputs.text import CsvFormat, JsonLinesFormat, LinesFormat

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"), max_size=12)


def read_all(reader, path, nbytes):
    (file,) = list_files([str(path)])
    reader.select(reader.schema(file))
    return [
        (rows.table.slice(at, 1).to_pylist()[0], rows.place(at), rows.errors.get(at))
        for start, stop, _ in reader.split(file, nbytes)
        for rows in reader.read(file, start, stop)
        for at in range(len(rows))
    ]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(WORDS, min_size=1, max_size=30), st.integers(1, 200), st.integers(1, 64), st.booleans()
)
def test_json_lines(tmp_path_factory, words, nbytes, block, ends):
    path = tmp_path_factory.mktemp("text") / "x.jsonl"
    lines = "\n".join(json.dumps({"a": word, "n": at}) for at, word in enumerate(words))
    path.write_text(lines + "\n" * ends, encoding="utf-8")
    found = read_all(JsonLinesFormat(block), path, nbytes)
    assert [row for row, _, _ in found] == [{"a": w, "n": at} for at, w in enumerate(words)]
    assert [place for _, place, _ in found] == [f"{path}, row {at + 1}" for at in range(len(words))]


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=30), st.integers(1, 200), st.integers(1, 64))
def test_csv_with_quotes_and_newlines(tmp_path_factory, words, nbytes, block):
    path = tmp_path_factory.mktemp("text") / "x.csv"
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(["a", "n"])
    writer.writerows([f"w{word}", at] for at, word in enumerate(words))
    path.write_text(out.getvalue(), encoding="utf-8")
    found = read_all(CsvFormat(block), path, nbytes)
    assert [(row["a"], row["n"]) for row, _, _ in found] == [
        (f"w{word}", at) for at, word in enumerate(words)
    ]
    assert [place for _, place, _ in found] == [f"{path}, row {at + 1}" for at in range(len(words))]


@pytest.mark.parametrize("nbytes", [1, 7, 1000])
def test_lines_of_text_skip_empty_ones(tmp_path, nbytes):
    path = tmp_path / "x.txt"
    path.write_bytes(b"one\n\ntwo\r\n  \nthree")
    found = read_all(LinesFormat(4), path, nbytes)
    assert [row["text"] for row, _, _ in found] == ["one", "two", "three"]


def test_invalid_lines_are_rows_with_an_error(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\n{"a": \n{"a": "x"}\n[3]\n{"a": 4}\n')
    reader = JsonLinesFormat(1 << 20)
    (file,) = list_files([str(path)])
    reader.select(pa.schema([("a", pa.int64())]))
    (rows,) = reader.read(file, 0, -1)
    assert rows.table.column("a").to_pylist() == [1, None, None, None, 4]
    assert sorted(rows.errors) == [1, 2, 3]
    assert "column 'a'" in rows.errors[2]


def test_invalid_records_of_csv_are_rows_with_an_error(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,x\n2\nz,y\n4,w\n")
    reader = CsvFormat(1 << 20)
    (file,) = list_files([str(path)])
    reader.select(pa.schema([("a", pa.int64()), ("b", pa.string())]))
    (rows,) = reader.read(file, 0, -1)
    assert rows.table.column("a").to_pylist() == [1, None, None, 4]
    assert "1 values, the header has 2" in rows.errors[1]
    assert "column 'a'" in rows.errors[2]


@pytest.mark.parametrize(
    ("suffix", "codec"), [("gz", "gzip"), ("bz2", "bz2"), ("zst", "zstd"), ("lz4", "lz4")]
)
def test_compressed_files_are_one_range(tmp_path, suffix, codec):
    path = tmp_path / f"x.jsonl.{suffix}"
    with pa.CompressedOutputStream(str(path), codec) as out:
        out.write(b"".join(b'{"a": %d}\n' % at for at in range(1000)))
    (file,) = list_files([str(path)])
    reader = JsonLinesFormat(512)
    assert reader.split(file, 10) == [(0, -1, file.size)]
    assert [row["a"] for row, _, _ in read_all(reader, path, 10)] == list(range(1000))


def test_a_file_without_rows_is_named(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n")
    (file,) = list_files([str(path)])
    with pytest.raises(JobFailed, match="has no rows"):
        CsvFormat(64).schema(file)


def test_the_header_of_a_csv_file_is_read_once(tmp_path, monkeypatch):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "1,x\n" * 1000)
    (file,) = list_files([str(path)])
    opened = []
    real = type(file).open
    monkeypatch.setattr(type(file), "open", lambda self: opened.append(self) or real(self))
    reader = CsvFormat(64)
    reader.select(reader.schema(file))
    assert sum(len(rows) for rows in reader.read(file, 0, -1)) == 1000
    assert len(opened) == 3  # header, schema, rows
