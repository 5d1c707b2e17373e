"""Every input format feeds a model, and every output format has its results."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tritonpy import StartupError
from tritonpy_batch import InvalidJob, JobFailed, run_batch
from tritonpy_batch.conversion import decode_image
from tritonpy_batch.inputs import list_files, plan_shards
from tritonpy_batch.inputs.columnar import ParquetFormat

ROWS = 25
VALUES = np.arange(ROWS * 4, dtype=np.float32).reshape(ROWS, 4)


def write_parquet(folder):
    table = pa.table({"X": pa.FixedSizeListArray.from_arrays(pa.array(VALUES.reshape(-1)), 4)})
    pq.write_table(table, folder / "x.parquet", row_group_size=7)


def test_consecutive_row_groups_of_a_shard_are_read_in_one_go(tmp_path):
    write_parquet(tmp_path)
    files = list_files([str(tmp_path)])
    (shard,) = plan_shards(files, ParquetFormat(1 << 20), 1 << 20)
    assert [(each.file, each.start, each.stop) for each in shard.pieces] == [(0, 0, 4)]
    assert len(plan_shards(files, ParquetFormat(1 << 20), 1)) == 4


def write_tensors(folder):
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(VALUES)
    with pa.ipc.new_stream(folder / "x.arrow", pa.schema([("X", tensors.type)])) as out:
        out.write_table(pa.table({"X": tensors}))


def write_arrow(folder):
    table = pa.table({"X": pa.array(VALUES.tolist(), pa.list_(pa.float32()))})
    with pa.ipc.new_file(folder / "x.arrow", table.schema) as out:
        out.write_table(table, max_chunksize=4)


def write_jsonl(folder):
    lines = [json.dumps({"X": row}) for row in VALUES.tolist()]
    (folder / "x.jsonl").write_text("\n".join(lines))


def write_csv(folder):
    lines = ["a,b,c,d", *(",".join(map(str, row)) for row in VALUES.tolist())]
    (folder / "x.csv").write_text("\n".join(lines))


def write_npy(folder):
    np.save(folder / "x.npy", VALUES)


def write_big_endian(folder):
    np.save(folder / "x.npy", VALUES.astype(">f4"))


def write_npz(folder):
    np.savez_compressed(folder / "x.npz", X=VALUES, other=np.zeros(ROWS))


@pytest.mark.parametrize(
    ("write", "columns"),
    [
        (write_parquet, ()), (write_tensors, ()), (write_arrow, ()), (write_jsonl, ()),
        (write_csv, (("X", ("a", "b", "[cd]")),)), (write_npy, ()), (write_big_endian, ()),
        (write_npz, ()),
    ],
)  # fmt: skip
def test_input_formats(tmp_path, options, read, write, columns):
    folder = tmp_path / "in"
    folder.mkdir()
    write(folder)
    job = options("double", folder, columns=columns, shard_bytes=150)
    assert [row["Y"] for row in read(run_batch(job).output)] == (2 * VALUES).tolist()


def test_lines_of_text_feed_strings(tmp_path, options, read):
    (tmp_path / "x.txt").write_text("one\n\nzwei ü\n")
    rows = read(run_batch(options("echo", tmp_path / "x.txt", keep=("text",))).output)
    assert [row["Y"] for row in rows] == [row["text"] for row in rows] == ["one", "zwei ü"]


def picture(color):
    out = io.BytesIO()
    Image.new("RGB", (8, 8), color).save(out, "PNG")
    return out.getvalue()


def test_images_are_decoded_scaled_and_resized_and_broken_ones_are_errors(tmp_path, options, read):
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.png").write_bytes(picture((255, 0, 51)))
    (folder / "b.png").write_bytes(b"no image")
    (folder / "deep" / "c.png").write_bytes(picture((0, 255, 0)))
    (folder / "_hidden.png").write_bytes(picture((1, 1, 1)))
    job = options("image", folder, keep=("path",), max_errors="1")
    rows = read(run_batch(job).output)
    assert [row["path"].removeprefix(str(folder)) for row in rows] == [
        "/a.png", "/b.png", "/deep/c.png",
    ]  # fmt: skip
    assert np.allclose(np.array(rows[0]["Y"])[:, 0, 0], [1, 0, 0.2])
    assert "cannot be decoded" in rows[1]["_error"]
    assert np.allclose(np.array(rows[2]["Y"])[:, 1, 1], [0, 1, 0])


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        ("none", [255, 0, 51]),
        ("unit", [1, 0, 0.2]),
        ("inception", [1, -1, -0.6]),
        ("imagenet", [(1 - 0.485) / 0.229, -0.456 / 0.224, (0.2 - 0.406) / 0.225]),
    ],
)
def test_pixels_are_scaled(scale, expected):
    for shape, layout in (((3, 2, 2), "chw"), ((1, 2, 2, 3), "hwc")):
        found = decode_image(picture((255, 0, 51)), shape, layout, scale)
        assert found.shape == shape
        assert np.allclose(
            found.reshape(3, 4)[:, 0] if layout == "chw" else found[0, 0, 0], expected
        )


def test_webdataset_archives_have_a_column_per_extension(tmp_path, options, read):
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for number in range(3):
            for name, content in (
                (f"{number}.png", picture((number, 0, 0))),
                (f"{number}.cls", b"7"),
            ):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    job = options(
        "image", tmp_path / "x.tar", keep=("__key__", "cls"), columns=(("X", ("png",)),),
        image_scale="none",
    )  # fmt: skip
    rows = read(run_batch(job).output)
    assert [(row["__key__"], row["cls"]) for row in rows] == [("0", 7), ("1", 7), ("2", 7)]
    assert [row["Y"][0][0][0] for row in rows] == [0, 1, 2]


def test_rows_of_several_lengths_keep_their_order(tmp_path, options, read):
    values = [[float(at)] * (1 + at % 3) for at in range(50)]
    pq.write_table(pa.table({"X": values}), tmp_path / "x.parquet")
    summary = run_batch(options("ragged", tmp_path / "x.parquet"))
    assert [row["Y"] for row in read(summary.output)] == [[-v for v in row] for row in values]
    assert summary.progress.batches == 8  # three shapes, up to eight rows each


def test_a_model_without_batches_gets_one_row_per_request(tmp_path, options, read):
    values = np.arange(18, dtype=np.float32).reshape(3, 2, 3)
    np.save(tmp_path / "x.npy", values)
    summary = run_batch(options("single", tmp_path / "x.npy"))
    assert [row["Y"] for row in read(summary.output)] == (-values).tolist()
    assert summary.progress.batches == 3


@pytest.mark.parametrize("form", ["jsonl", "npz", "npy"])
def test_output_formats(tmp_path, options, form):
    np.save(tmp_path / "x.npy", VALUES)
    job = options("double", tmp_path / "x.npy", output_format=form, on_error="fail")
    folder = tmp_path / "out"
    run_batch(job)
    if form == "jsonl":
        lines = (folder / "part-00000.jsonl").read_text().splitlines()
        assert [json.loads(line) for line in lines] == [{"Y": row} for row in (2 * VALUES).tolist()]
    elif form == "npy":
        assert np.array_equal(np.load(folder / "part-00000.npy"), 2 * VALUES)
    else:
        with np.load(folder / "part-00000.npz") as arrays:
            assert np.array_equal(arrays["Y"], 2 * VALUES)
            assert arrays["_error"].tolist() == [""] * ROWS
        with zipfile.ZipFile(folder / "part-00000.npz") as archive:
            assert {each.date_time[0] for each in archive.infolist()} == {1980}


def test_errors_in_json_lines_and_archives(tmp_path, options):
    np.save(tmp_path / "x.npy", np.array([[1.0], [13.0], [3.0]], np.float32))
    for form in ("jsonl", "npz"):
        job = options(
            "poison", tmp_path / "x.npy", output_format=form, max_errors="1",
            output=str(tmp_path / form),
        )  # fmt: skip
        run_batch(job)
    lines = (tmp_path / "jsonl" / "part-00000.jsonl").read_text().splitlines()
    assert json.loads(lines[1]) == {
        "Y": None, "_error": "13 is not allowed", "_attempts": 4,
    }  # fmt: skip
    with np.load(tmp_path / "npz" / "part-00000.npz") as arrays:
        assert arrays["Y"].tolist() == [2, 0, 6]
        assert arrays["_error"].tolist() == ["", "13 is not allowed", ""]


def test_the_best_classes_have_labels(tmp_path, options, read):
    np.save(tmp_path / "x.npy", np.array([[0, 3, 1, 2], [9, 0, 0, 8]], np.float32))
    rows = read(run_batch(options("classes", tmp_path / "x.npy", top=2)).output)
    assert rows[0]["Y"] == [
        {"score": 3.0, "index": 1, "label": "one"}, {"score": 2.0, "index": 3, "label": "three"},
    ]  # fmt: skip
    assert [each["label"] for each in rows[1]["Y"]] == ["zero", "three"]


def test_binary_results(tmp_path, options, read):
    table = pa.table({"X": pa.array([b"a", b"\xff"], pa.binary())})
    pq.write_table(table, tmp_path / "x.parquet")
    kept = options("echo", tmp_path / "x.parquet", strings="binary", output=str(tmp_path / "b"))
    assert [row["Y"] for row in read(run_batch(kept).output)] == [b"a", b"\xff"]
    text = options("echo", tmp_path / "x.parquet", max_errors="1")
    rows = read(run_batch(text).output)
    assert rows[1]["_error"] == "output 'Y' is no UTF-8: use --strings binary"


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"columns": (("Z", ("X",)),)}, "--map Z=…: model 'double' has no such input; it has X"),
        ({"columns": (("X", ("q",)),)}, "no column 'q'; the columns are X"),
        ({"keep": ("q",)}, "--keep q: no such column"),
        ({"outputs": ("q",)}, "--outputs q: model 'double' has no such output; it has Y"),
        ({"batch_size": 9}, "takes at most 8 rows"),
        ({"output_format": "npy"}, "npy has no place for errors"),
        ({"input_format": "exe"}, "--input-format exe: expected one of parquet"),
        ({"max_errors": "x"}, "--max-errors x: expected a number"),
        ({"share": (3, 2)}, "--shard 3/2"),
        ({"model": "none"}, "none"),
    ],
)
def test_invalid_jobs_say_what_to_do(tmp_path, options, more, text):
    pq.write_table(pa.table({"X": VALUES.tolist()}), tmp_path / "x.parquet")
    with pytest.raises((InvalidJob, StartupError)) as caught:
        run_batch(options(more.pop("model", "double"), tmp_path / "x.parquet", **more))
    assert text in str(caught.value)
    assert not list((tmp_path / "out").glob("part-*"))


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (pa.array(["a"]), "column 'X' is string, input 'X' wants FP32[4]: text is not converted"),
        (pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2)), "a row has the shape [2]"),
        (pa.array([True]), "booleans and numbers are not converted"),
        (pa.array([0], pa.timestamp("us")), "this type has no tensor"),
    ],
)
def test_columns_that_cannot_feed_an_input_are_refused_before_the_start(
    tmp_path, options, column, text
):
    pq.write_table(pa.table({"X": column}), tmp_path / "x.parquet")
    with pytest.raises(InvalidJob) as caught:
        run_batch(options("double", tmp_path / "x.parquet"))
    assert text in str(caught.value)


def test_mixed_missing_and_broken_inputs_are_named(tmp_path, options):
    (tmp_path / "a.csv").write_text("X\n1\n")
    (tmp_path / "b.jsonl").write_text("{}\n")
    with pytest.raises(InvalidJob, match="several formats"):
        run_batch(options("double", tmp_path / "?.*"))
    with pytest.raises(InvalidJob, match="no file matches"):
        run_batch(options("double", tmp_path / "*.parquet"))
    (tmp_path / "c.xyz").write_text("")
    with pytest.raises(InvalidJob, match="unknown format"):
        run_batch(options("double", tmp_path / "c.xyz"))
    (tmp_path / "d.parquet").write_text("no")
    with pytest.raises(JobFailed, match="is no Parquet file"):
        run_batch(options("double", tmp_path / "d.parquet"))
