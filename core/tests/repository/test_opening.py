from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
from msgspec import Meta

from tritonpy import Options, Repository, hookimpl
from tritonpy.config.server import InvalidServerConfig, decode_server_config
from tritonpy.errors import PluginError
from tritonpy.plugins import make_plugin_manager
from tritonpy.repository import builtin
from tritonpy.repository.opening import cache_folder, open_repositories


class Place(Repository):
    class Options(Options, frozen=True):
        speed: Annotated[int, Meta(description="x")] = 0
        color: Annotated[str, Meta(description="x")] = ""

    def scan(self):
        return {}


class Anything(Place):
    """Registered for every scheme that nobody else is."""


class Plugin:
    def __init__(self, **repositories):
        self.repositories = repositories

    @hookimpl
    def tritonpy_repositories(self):
        return self.repositories


def opened(plugin, *repositories, **options):
    manager = make_plugin_manager(discover=False)
    for each in (builtin, plugin):
        manager.register(each, type(each).__name__ if each is plugin else "core")
    config = decode_server_config({"repositories": list(repositories), "repository_options": options})
    return open_repositories(config, manager)


def test_the_scheme_chooses_the_class_and_no_scheme_is_a_folder():
    found = opened(Plugin(toy=Place), {"url": "toy://a"}, {"url": "/models"}, {"url": "file:///models"})
    assert [type(each).__name__ for each in found] == ["Place", "LocalRepository", "LocalRepository"]
    assert [each.context.url for each in found] == ["toy://a", "/models", "file:///models"]


def test_what_nobody_is_registered_for_goes_to_whom_takes_everything():
    plugin = Plugin(**{"toy": Place, "*": Anything})
    assert [type(each) for each in opened(plugin, {"url": "toy://a"}, {"url": "other://a"})] == [Place, Anything]


def test_without_one_who_takes_everything_a_scheme_is_refused():
    with pytest.raises(PluginError, match="no plugin provides model repository 'other', installed are: file, toy"):
        opened(Plugin(toy=Place), {"url": "other://a"})


def test_options_beside_a_url_win_over_those_of_its_scheme():
    first, second = opened(
        Plugin(toy=Place),
        {"url": "toy://a", "options": {"speed": 2}},
        {"url": "toy://b"},
        toy={"speed": 1, "color": "red"},
    )
    assert (first.options.speed, first.options.color) == (2, "red")
    assert (second.options.speed, second.options.color) == (1, "red")


@pytest.mark.parametrize(
    ("repository", "options", "where"),
    [
        ({"url": "toy://a", "options": {"sped": 2}}, {}, r"repositories\[0\].options"),
        ({"url": "toy://a"}, {"sped": 2}, "repository_options.toy"),
    ],
)
def test_a_wrong_option_is_named_with_its_place(repository, options, where):
    with pytest.raises(InvalidServerConfig, match=where):
        opened(Plugin(toy=Place), repository, toy=options)


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, Path("/x/tritonpy")),
        ({"HOME": "/h"}, Path("/h/.cache/tritonpy")),
    ],
)
def test_the_cache_is_the_user_s(environment, folder):
    assert cache_folder(environment) == folder


def test_who_has_no_home_has_a_cache_of_their_own():
    assert cache_folder({}).name.startswith("tritonpy-")
