from __future__ import annotations

from pathlib import Path

import pytest

from tritonpy.api.repository import ModelChanged, ModelListing, Repository, RepositoryContext
from tritonpy.repository.local import LocalRepository
from tritonpy.repository.sources import FoundModel, Sources
from tritonpy_types.errors import AlreadyExists, InvalidArgument, Unavailable


class FakeRepository(Repository):
    """Has the models that its URL names."""

    def scan(self):
        if self.context.url == "burnt":
            raise Unavailable("burnt down")
        return {name: ModelListing(name, "1", {}) for name in self.context.url.split()}


def repositories_of(*urls):
    return [FakeRepository(None, RepositoryContext(url, None)) for url in urls]


def sources(*urls, namespaced=False):
    return Sources(repositories_of(*urls), namespaced)


def test_models_are_found_with_their_repository():
    first, second = repositories_of("a b", "c")
    found = Sources([first, second]).scan()
    assert found.names == ["a", "b", "c"]
    assert {name: model.repository for name, model in found.models.items()} == {
        "a": first,
        "b": first,
        "c": second,
    }


def test_a_name_in_two_repositories_cannot_be_loaded():
    found = sources("a b", "b c", "b").scan()
    assert sorted(found.models) == ["a", "c"]
    assert found.duplicates == {"b"}
    assert found.names == ["a", "b", "c"]


def test_each_repository_is_a_namespace_where_there_are_namespaces():
    found = sources("a b", "b c", namespaced=True).scan()
    assert found.names == ["a b::a", "a b::b", "b c::b", "b c::c"]
    assert not found.duplicates
    assert [(model.namespace, model.listing.name) for model in found.models.values()] == [
        ("a b", "a"), ("a b", "b"), ("b c", "b"), ("b c", "c")
    ]  # fmt: skip
    assert found.keys_for("b") == ["a b::b", "b c::b"]
    assert found.keys_for("missing") == ["missing"]


@pytest.mark.parametrize("name", ["a", "b", "c", "missing"])
def test_one_model_is_looked_up_as_the_scan_finds_it(name):
    both = sources("a b", "b c")
    one, all_of_them = both.look_up(name), both.scan()
    assert one.models.get(name) == all_of_them.models.get(name)
    assert (name in one.duplicates) == (name in all_of_them.duplicates)


def test_several_models_are_looked_up_at_once():
    assert sources("a b", "c", "d").look_up("a", "c", "missing").names == ["a", "c"]


def test_names_are_counted_in_their_namespaces():
    assert sources("a b", "b").names() == {("", "a"): 1, ("", "b"): 2}
    assert sources("a b", "b", namespaced=True).names() == {
        ("a b", "a"): 1,
        ("a b", "b"): 1,
        ("b", "b"): 1,
    }


@pytest.mark.parametrize("call", [Sources.scan, Sources.names, lambda found: found.look_up("a")])
def test_a_repository_that_cannot_be_read_is_an_error(call):
    with pytest.raises(Unavailable, match="burnt down"):
        call(sources("a", "burnt"))


class Moving(FakeRepository):
    """A model that changes during the first `changes` calls of `localize`.

    Each lookup finds a newer listing.
    """

    def __init__(self, changes, there=True):
        super().__init__(None, RepositoryContext("m", None))
        self.changes = changes
        self.there = there
        self.looks = 0

    def find(self, name):
        self.looks += 1
        return ModelListing(name, f"look {self.looks}", {}) if self.there else None

    def localize(self, listing):
        if self.changes:
            self.changes -= 1
            raise ModelChanged(f"{listing.fingerprint} is old")
        return Path(listing.fingerprint)


def localized(repository):
    return FoundModel(repository, ModelListing("m", "scanned", {}), "space").localize()


def test_a_model_is_localized_as_it_was_listed():
    found, path = localized(Moving(0))
    assert (found.listing.fingerprint, path, found.namespace) == (
        "scanned",
        Path("scanned"),
        "space",
    )


def test_a_model_that_changes_meanwhile_is_looked_up_again():
    found, path = localized(Moving(2))
    assert (found.listing.fingerprint, path) == ("look 2", Path("look 2"))


def test_a_model_that_keeps_changing_is_an_error():
    with pytest.raises(ModelChanged, match="look 2 is old"):
        localized(Moving(1000))


def test_a_model_that_is_removed_meanwhile_is_an_error():
    with pytest.raises(ModelChanged, match="scanned is old"):
        localized(Moving(1, there=False))


def test_every_repository_watches_and_is_interrupted():
    class Watched(FakeRepository):
        calls = ()

        def watch(self, changed):
            self.calls += (changed,)

        def interrupt(self):
            self.calls += ("interrupted",)

    repositories = [Watched(None, RepositoryContext("a", None)) for _ in range(2)]
    both = Sources(repositories)
    both.watch(print)
    both.interrupt()
    assert [each.calls for each in repositories] == [(print, "interrupted")] * 2


def local(path, **folders):
    return LocalRepository(None, RepositoryContext(str(path), path), folders)


def test_a_registered_repository_has_models_of_other_names_than_their_folders(tmp_path):
    (tmp_path / "folder" / "1").mkdir(parents=True)
    (tmp_path / "member" / "1").mkdir(parents=True)
    found = sources("a")
    found.register(local(tmp_path, served="folder"))
    assert found.scan().names == ["a", "member", "served"]
    listing = found.look_up("served").models["served"].listing
    assert (listing.path, listing.renamed) == (tmp_path / "folder", True)
    assert not found.look_up("member").models["member"].listing.renamed
    assert not found.look_up("folder").models
    found.unregister(str(tmp_path))
    assert found.scan().names == ["a"]


def test_a_path_or_a_name_is_registered_once_and_must_exist(tmp_path):
    found = sources("a")
    found.register(local(tmp_path, served="folder"))
    with pytest.raises(AlreadyExists, match="has already been registered"):
        found.register(local(tmp_path))
    other = tmp_path / "other"
    with pytest.raises(InvalidArgument, match="repository not found"):
        found.register(local(other))
    other.mkdir()
    with pytest.raises(AlreadyExists, match="there is a conflicting mapping for 'served'"):
        found.register(local(other, served="x"))
    with pytest.raises(InvalidArgument, match="failed to unregister"):
        found.unregister(str(other))
