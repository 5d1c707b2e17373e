"""Rules for all interfaces of the plugin API."""

from __future__ import annotations

import argparse
import inspect
from pathlib import Path

import pytest

import tritonpy
from tritonpy.api.options import Options

REQUIRED = {
    "Authenticator": {"authenticate"},
    "Backend": set(),  # infer or execute
    "BatchPolicy": {"plan"},
    "Cache": {"lookup"},
    "Command": {"run"},
    "Frontend": {"start"},
    "Observer": {"responded"},
    "RateLimiter": {"acquire"},
    "RepoAgent": {"act"},
    "Repository": {"scan"},
    "Scheduler": {"enqueue"},
    "Sink": {"put"},
}
OPTIONLESS = {"BatchPolicy", "Command", "RateLimiter", "Scheduler", "Sink"}


@pytest.mark.parametrize("name", sorted(REQUIRED))
def test_an_interface_has_at_most_one_required_method_and_every_method_is_documented(name: str) -> None:
    kind = getattr(tritonpy, name)
    assert kind.__abstractmethods__ == REQUIRED[name]
    methods = [value for key, value in vars(kind).items() if inspect.isfunction(value) and not key.startswith("_")]
    assert [method.__name__ for method in methods if not method.__doc__] == []


@pytest.mark.parametrize("name", sorted(set(REQUIRED) - OPTIONLESS))
def test_a_configured_interface_has_options(name: str) -> None:
    assert issubclass(getattr(tritonpy, name).Options, Options)


def test_a_repository_without_local_folders_must_define_localize() -> None:
    class RemoteRepository(tritonpy.Repository):
        def scan(self) -> dict[str, tritonpy.ModelListing]:
            return {}

    repository = RemoteRepository(tritonpy.NoOptions(), tritonpy.RepositoryContext("remote://", Path()))
    near = tritonpy.ModelListing("m", "1", {}, Path("/models/m"))
    assert repository.localize(near) == Path("/models/m")
    with pytest.raises(NotImplementedError, match="RemoteRepository must define localize"):
        repository.localize(tritonpy.ModelListing("m", "1", {}))


def test_by_default_every_principal_may_do_everything() -> None:
    class Open(tritonpy.Authenticator):
        def authenticate(self, headers: object) -> tritonpy.Principal:
            return tritonpy.Principal("client")

    authenticator = Open(tritonpy.NoOptions())
    assert all(authenticator.allows(authenticator.authenticate({}), verb, "m") for verb in tritonpy.Verb)


def test_the_no_rate_limiter_grants_everything() -> None:
    limiter = tritonpy.NoRateLimiter()
    limiter.register("m_0_0#1", 0, None)
    for _ in range(2):
        assert limiter.acquire("m_0_0#1", lambda: pytest.fail("no instance waits"))
    limiter.release("m_0_0#1")
    limiter.unregister("m_0_0#1")


def test_a_command_may_take_no_arguments() -> None:
    class Hello(tritonpy.Command):
        def run(self, arguments: argparse.Namespace) -> int:
            return 0

    parser = argparse.ArgumentParser()
    Hello().configure(parser)
    assert Hello().run(parser.parse_args([])) == 0
