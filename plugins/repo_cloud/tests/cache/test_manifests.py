from __future__ import annotations

import os
import time

from tritonpy_repo_cloud.cache.manifests import Manifests
from tritonpy_repo_cloud.remote_file import RemoteFile

FILES = [
    RemoteFile("a/b c/1", "x/a/b c/1", 5, "v", ("md5", "0"), 1.5),
    RemoteFile("a/2/", "x/a/2", 0, "empty"),
]


def test_what_was_written_is_read(folder):
    manifests = Manifests(folder, "s3://b")
    manifests.write("a", FILES)
    assert manifests.read("a") == FILES
    assert Manifests(folder, "s3://other").read("a") is None


def test_names_of_all_kinds_are_kept(folder):
    manifests = Manifests(folder, "s3://b")
    names = ["plain", "mit Leerzeichen", "ä%2F", "x" * 250]
    for name in names:
        manifests.write(name, [RemoteFile(f"{name}/f", "x", 1, "1")])
    assert set(manifests.names()) == set(names)


def test_only_removed_models_are_forgotten(folder):
    manifests = Manifests(folder, "s3://b")
    for name in ("a", "b"):
        manifests.write(name, [RemoteFile(f"{name}/f", "x", 1, "1")])
    manifests.retain({"b", "never fetched"})
    assert list(manifests.names()) == ["b"]


def test_an_unreadable_manifest_is_none(folder):
    manifests = Manifests(folder, "s3://b")
    manifests.write("a", FILES)
    (path,) = folder.manifests.glob("*/*.json")
    path.write_text("{")
    assert manifests.read("a") is None
    assert list(manifests.names()) == []


def test_the_age_is_the_time_since_the_store_was_read(folder):
    manifests = Manifests(folder, "s3://b")
    assert manifests.age_s() == float("inf")
    manifests.retain(set())
    (seen,) = folder.manifests.glob("*/seen")
    os.utime(seen, (time.time() - 7200,) * 2)
    assert 7200 <= manifests.age_s() < 7300
