from __future__ import annotations

import json

import pytest

from tritonpy.api.repository import ModelListing, RepositoryContext
from tritonpy.repository.lazy_choice import lazy_choice
from tritonpy.repository.local import LocalRepository
from tritonpy.repository.sources import FoundModel
from tritonpy_config.server.sections import MemorySettings
from tritonpy_types.errors import InvalidArgument

from ..toys.hoard import parameters

NONE = MemorySettings()
ALL = MemorySettings(lazy=["*"])


@pytest.fixture
def found(model_repository, tmp_path):
    def add(config, files=None):
        model_repository.add("text-large", config, files=files)
        repository = LocalRepository(None, RepositoryContext(str(model_repository.path), tmp_path))
        return FoundModel(repository, repository.find("text-large"))

    return add


def test_a_model_is_lazy_by_its_configuration_or_a_pattern(found):
    assert lazy_choice(found("", None), None, "", NONE) is None
    assert (
        lazy_choice(found(""), None, "", MemorySettings(lazy=["image-*", "text-?????"])) is not None
    )
    assert lazy_choice(found(""), None, "", MemorySettings(lazy=["text"])) is None
    assert lazy_choice(found(parameters(lazy="on")), None, "", NONE) is not None


def test_the_configuration_wins_over_the_patterns(found):
    assert lazy_choice(found(parameters(lazy="off")), None, "", ALL) is None
    pinning = MemorySettings(lazy=["*"], pinned=["text-*"])
    assert lazy_choice(found(""), None, "", pinning).pinned
    assert not lazy_choice(found(parameters(pinned="false")), None, "", pinning).pinned


def test_a_model_without_a_configuration_can_be_lazy(found):
    assert lazy_choice(found(None), None, "", ALL).config.name == ""


def test_the_named_configuration_is_read_if_it_exists(found):
    model = found("", {"configs/small.pbtxt": parameters(lazy="true")})
    assert lazy_choice(model, None, "small", NONE) is not None
    assert lazy_choice(model, None, "large", NONE) is None


def test_a_clients_configuration_replaces_the_file(found):
    given = json.dumps({"parameters": {"lazy": {"string_value": "true"}}})
    assert lazy_choice(found(""), given, "", NONE) is not None
    assert lazy_choice(found(parameters(lazy="true")), "{}", "", NONE) is None


def test_members_used_only_by_a_lazy_ensemble_are_lazy_by_default(found):
    assert lazy_choice(found(""), None, "", NONE, as_member=True) is not None
    assert lazy_choice(found(parameters(lazy="false")), None, "", NONE, as_member=True) is None


def test_a_configuration_that_cannot_be_read_is_left_to_the_load(found, tmp_path):
    assert lazy_choice(found("lazy lazy lazy"), None, "", ALL) is None
    repository = LocalRepository(None, RepositoryContext(str(tmp_path), tmp_path))
    missing = FoundModel(
        repository, ModelListing("gone", "", {"config.pbtxt": ""}, tmp_path / "gone")
    )
    assert lazy_choice(missing, None, "", ALL) is None


def test_a_value_that_is_no_boolean_is_rejected(found):
    with pytest.raises(InvalidArgument, match="pinned"):
        lazy_choice(found(parameters(pinned="sometimes")), None, "", ALL)
