from __future__ import annotations

from types import SimpleNamespace

import pytest

from tritonpy_repo_cloud.cache.objects import Objects

FIRST, SECOND = "1" * 64, "2" * 64


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"\0" * 64, b"../../outside", b"a" * 5000])
def test_a_damaged_digest_file_is_ignored(tmp_path, content):
    objects = Objects(tmp_path, SimpleNamespace(has=lambda digest: True))
    objects.record("key", FIRST)
    (note,) = tmp_path.glob("*/*")
    note.write_bytes(content)
    assert objects.digest("key") is None
    objects.remove_dangling()
    assert not note.exists()


def test_an_object_is_known_while_its_content_is_there(tmp_path):
    there = {FIRST, SECOND}
    objects = Objects(tmp_path, SimpleNamespace(has=there.__contains__))
    objects.record("k1", FIRST)
    objects.record("k2", SECOND)
    assert [objects.digest(key) for key in ("k1", "k2", "k3")] == [FIRST, SECOND, None]
    there.remove(FIRST)
    assert [objects.digest(key) for key in ("k1", "k2")] == [None, SECOND]
    objects.remove_dangling()
    assert sum(path.is_file() for path in tmp_path.rglob("*")) == 1
