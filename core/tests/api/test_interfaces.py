"""Rules for all interfaces of the plugin API."""

from __future__ import annotations

import argparse
import inspect
from pathlib import Path

import pytest

import tritonpy
from tritonpy_config.options import Options

REQUIRED = {
    tritonpy.Backend: set(),  # infer or execute
    tritonpy.Cache: {"lookup"},
    tritonpy.Command: {"run"},
    tritonpy.auth.Authenticator: {"authenticate"},
    tritonpy.frontend.Frontend: {"start"},
    tritonpy.frontend.Sink: {"put"},
    tritonpy.metrics.Observer: {"responded"},
    tritonpy.repository.RepoAgent: {"act"},
    tritonpy.repository.Repository: {"scan"},
    tritonpy.scheduling.BatchPolicy: {"plan"},
    tritonpy.scheduling.RateLimiter: {"acquire"},
    tritonpy.scheduling.Scheduler: {"enqueue"},
}
OPTIONLESS = {
    tritonpy.Command,
    tritonpy.frontend.Sink,
    tritonpy.scheduling.BatchPolicy,
    tritonpy.scheduling.RateLimiter,
    tritonpy.scheduling.Scheduler,
}


@pytest.mark.parametrize("kind", REQUIRED)
def test_an_interface_has_at_most_one_required_method_and_every_method_is_documented(
    kind: type,
) -> None:
    assert kind.__abstractmethods__ == REQUIRED[kind]
    methods = [
        value
        for key, value in vars(kind).items()
        if inspect.isfunction(value) and not key.startswith("_")
    ]
    assert [method.__name__ for method in methods if not method.__doc__] == []


@pytest.mark.parametrize("kind", sorted(set(REQUIRED) - OPTIONLESS, key=str))
def test_a_configured_interface_has_options(kind: type) -> None:
    assert issubclass(kind.Options, Options)


def test_a_repository_without_local_folders_must_define_localize() -> None:
    class RemoteRepository(tritonpy.repository.Repository):
        def scan(self) -> dict[str, tritonpy.repository.ModelListing]:
            return {}

    repository = RemoteRepository(
        tritonpy.plugins.NoOptions(), tritonpy.repository.RepositoryContext("remote://", Path())
    )
    near = tritonpy.repository.ModelListing("m", "1", {}, Path("/models/m"))
    assert repository.localize(near) == Path("/models/m")
    with pytest.raises(NotImplementedError, match="RemoteRepository must define localize"):
        repository.localize(tritonpy.repository.ModelListing("m", "1", {}))


def test_by_default_every_principal_may_do_everything() -> None:
    class Open(tritonpy.auth.Authenticator):
        def authenticate(self, headers: object) -> tritonpy.auth.Principal:
            return tritonpy.auth.Principal("client")

    authenticator = Open(tritonpy.plugins.NoOptions())
    assert all(
        authenticator.allows(authenticator.authenticate({}), verb, "m")
        for verb in tritonpy.auth.Verb
    )


def test_the_no_rate_limiter_grants_everything() -> None:
    limiter = tritonpy.scheduling.NoRateLimiter()
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
