from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import StartupError
from tritonpy_repo_cloud.cache.folder import CacheFolder, hash_key, remove_tree, write_atomically


def test_the_cache_belongs_to_its_user_alone(tmp_path):
    CacheFolder(tmp_path / "a" / "cache").make()
    assert (tmp_path / "a" / "cache").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_created_fails_the_start(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        StartupError,
        match=r"the cache of model repositories cannot be created in .*; set another folder",
    ):
        CacheFolder(tmp_path / "file" / "cache").make()


def test_a_default_folder_that_everybody_may_write_into_is_refused(tmp_path):
    (tmp_path / "tritonpy-1").mkdir()
    (tmp_path / "tritonpy-1").chmod(0o777)
    with pytest.raises(
        StartupError,
        match=r"cannot be created in .*/repositories: everybody may write into .*/tritonpy-1; set",
    ):
        CacheFolder(tmp_path / "tritonpy-1" / "repositories", configured=False).make()
    assert list((tmp_path / "tritonpy-1" / "repositories").iterdir()) == []


def test_a_configured_folder_that_everybody_may_write_into_is_warned_of(tmp_path, caplog):
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume").chmod(0o777)
    CacheFolder(tmp_path / "volume").make()
    assert (
        f"the cache of model repositories in {tmp_path}/volume is not safe: everybody may write into it"
        in caplog.text
    )


@given(
    st.lists(st.text(alphabet=st.characters(exclude_characters="\0", codec="utf-8"))),
    st.lists(st.text(alphabet=st.characters(exclude_characters="\0", codec="utf-8"))),
)
def test_keys_are_equal_where_the_parts_are(one, other):
    assert (hash_key("x", *one) == hash_key("x", *other)) == (one == other)


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "new" / "file"
    write_atomically(path, b"first")
    with pytest.raises(TypeError):
        write_atomically(path, "no bytes")
    assert path.read_bytes() == b"first"
    assert [each.name for each in path.parent.iterdir()] == ["file"]


def test_read_only_folders_are_removed(tmp_path):
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "file").write_text("x")
    deep.chmod(0o555)
    deep.parent.chmod(0o555)
    remove_tree(tmp_path / "a")
    assert not (tmp_path / "a").exists()
