from __future__ import annotations

from types import SimpleNamespace

from tritonpy_repo_cloud.cache.objects import Objects


def test_an_object_is_known_while_its_content_is_there(tmp_path):
    there = {"d1", "d2"}
    objects = Objects(tmp_path, SimpleNamespace(has=there.__contains__))
    objects.note("k1", "d1")
    objects.note("k2", "d2")
    assert [objects.digest(key) for key in ("k1", "k2", "k3")] == ["d1", "d2", None]
    there.remove("d1")
    assert [objects.digest(key) for key in ("k1", "k2")] == [None, "d2"]
    objects.forget_lost()
    assert sum(path.is_file() for path in tmp_path.rglob("*")) == 1
