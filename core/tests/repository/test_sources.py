from __future__ import annotations

import pytest

from tritonpy.api.repository import ModelListing, Repository, RepositoryContext
from tritonpy.errors import Unavailable
from tritonpy.repository.sources import look_up, names, scan


class Shelf(Repository):
    """Has the models that its URL names."""

    def scan(self):
        if self.context.url == "burnt":
            raise Unavailable("burnt down")
        return {name: ModelListing(name, "1", {}) for name in self.context.url.split()}


def shelves(*urls):
    return [Shelf(None, RepositoryContext(url, None)) for url in urls]


def test_models_of_all_repositories_are_found_with_the_one_that_has_them():
    first, second = shelves("a b", "c")
    found = scan([first, second])
    assert found.names == ["a", "b", "c"]
    assert {name: model.repository for name, model in found.models.items()} == {"a": first, "b": first, "c": second}


def test_a_name_in_two_repositories_cannot_be_loaded():
    found = scan(shelves("a b", "b c", "b"))
    assert sorted(found.models) == ["a", "c"]
    assert found.duplicates == {"b"}
    assert found.names == ["a", "b", "c"]


@pytest.mark.parametrize("name", ["a", "b", "c", "nobody"])
def test_one_model_is_looked_up_as_the_scan_finds_it(name):
    repositories = shelves("a b", "b c")
    one, all_of_them = look_up(repositories, name), scan(repositories)
    assert one.models.get(name) == all_of_them.models.get(name)
    assert (name in one.duplicates) == (name in all_of_them.duplicates)


def test_names_are_counted():
    assert names(shelves("a b", "b")) == {"a": 1, "b": 2}


@pytest.mark.parametrize("call", [scan, names, lambda repositories: look_up(repositories, "a")])
def test_a_repository_that_cannot_be_read_is_an_error(call):
    with pytest.raises(Unavailable, match="burnt down"):
        call(shelves("a", "burnt"))
