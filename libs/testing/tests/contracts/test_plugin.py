from __future__ import annotations

from typing import Annotated

import msgspec

from tritonpy import Cache, Options, hookimpl
from tritonpy_testing import CacheContract
from tritonpy_testing.contracts.plugin import PluginContract


class Required(Options, frozen=True):
    size: Annotated[int, msgspec.Meta(description="How many.")]


class Silent(Options, frozen=True):
    size: int = 1


class Loose(msgspec.Struct):
    pass


class NoCache(Cache):
    def lookup(self, key):
        return None


class Unfinished(Cache):
    pass


class Plugin:
    @staticmethod
    @hookimpl
    def tritonpy_caches():
        return {"none": NoCache}


class Misspelled:
    @staticmethod
    @hookimpl
    def tritonpy_cache():
        return {"none": NoCache}


def contract(**attributes):
    return type(
        "Contract",
        (PluginContract,),
        {"interface": Cache, "hook": CacheContract.hook, "plugin_class": NoCache} | attributes,
    )


def test_a_registered_complete_class_passes(failures):
    assert failures(contract(plugin=Plugin, name="none")) == set()


def test_the_registration_is_checked_if_a_plugin_is_set(tests):
    assert tests(contract(plugin=Plugin)) - tests(contract()) == {
        "test_is_registered_under_its_name"
    }


def test_a_wrong_name_fails(failures):
    assert failures(contract(plugin=Plugin, name="other")) == {"test_is_registered_under_its_name"}


def test_a_misspelled_hook_fails(failures):
    assert failures(contract(plugin=Misspelled, name="none")) == {
        "test_is_registered_under_its_name"
    }


def test_another_class_under_the_name_fails(failures):
    other = type("Other", (NoCache,), {})
    assert failures(contract(plugin=Plugin, name="none", plugin_class=other)) == {
        "test_is_registered_under_its_name"
    }


def test_an_abstract_class_fails(failures):
    assert failures(contract(plugin_class=Unfinished)) == {"test_implements_the_interface"}


def test_a_class_of_another_kind_fails(failures):
    assert "test_implements_the_interface" in failures(contract(plugin_class=object))


def test_an_option_without_default_fails(failures):
    kind = type("Kind", (NoCache,), {"Options": Required})
    assert failures(contract(plugin_class=kind)) == {
        "test_options_decode_with_defaults_and_refuse_unknown_keys"
    }


def test_an_option_without_description_fails(failures):
    kind = type("Kind", (NoCache,), {"Options": Silent})
    assert failures(contract(plugin_class=kind)) == {"test_every_option_is_described"}


def test_a_struct_that_allows_any_key_fails(failures):
    kind = type("Kind", (NoCache,), {"Options": Loose})
    assert failures(contract(plugin_class=kind)) == {
        "test_options_decode_with_defaults_and_refuse_unknown_keys"
    }
