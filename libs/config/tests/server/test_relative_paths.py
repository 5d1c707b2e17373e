from __future__ import annotations

from pathlib import Path

import pytest

from tritonpy_config.server.relative_paths import anchor_paths

FOLDER = Path("/etc/server")


def test_repositories_and_the_log_file_are_relative_to_the_file():
    repositories = [{"url": "./models"}, {"url": "/srv"}, {"url": "s3://b/m"}]
    raw = {
        "repositories": repositories,
        "backend_directory": "backends",
        "logging": {"file": "a.log"},
    }
    assert anchor_paths(raw, FOLDER) == {
        "repositories": [{"url": "/etc/server/models"}, {"url": "/srv"}, {"url": "s3://b/m"}],
        "backend_directory": "/etc/server/backends",
        "logging": {"file": "/etc/server/a.log"},
    }
    assert raw["repositories"][0] == {"url": "./models"}


def test_cache_folders_of_repositories_are_relative_to_the_file():
    raw = {
        "repositories": [
            {"url": "s3://b", "options": {"cache-directory": "kept"}},
            {"url": "m", "options": 1},
        ],
        "repository_options": {
            "s3": {"cache_directory": "all", "parallel": 2},
            "gs": {"cache_directory": "/gs"},
            "as": None,
        },
    }
    assert anchor_paths(raw, FOLDER) == {
        "repositories": [
            {"url": "s3://b", "options": {"cache-directory": "/etc/server/kept"}},
            {"url": "/etc/server/m", "options": 1},
        ],
        "repository_options": {
            "s3": {"cache_directory": "/etc/server/all", "parallel": 2},
            "gs": {"cache_directory": "/gs"},
            "as": None,
        },
    }


def test_files_of_authenticators_are_relative_to_the_file():
    auth = {
        "api_keys": {"file": "keys.toml"},
        "jwt": {"jwks-file": "set.json", "jwks_url": "https://h/s"},
        "own": None,
    }
    assert anchor_paths({"auth": auth}, FOLDER)["auth"] == {
        "api_keys": {"file": "/etc/server/keys.toml"},
        "jwt": {"jwks-file": "/etc/server/set.json", "jwks_url": "https://h/s"},
        "own": None,
    }


def test_files_of_repository_agents_are_relative_to_the_file():
    agents = {
        "sealed": {"verify_key_files": ["a.pem", "/b.pem", 1], "directory": "d"},
        "own": {"file": "f"},
        "odd": {"files": 1},
    }
    assert anchor_paths({"repo_agents": agents}, FOLDER)["repo_agents"] == {
        "sealed": {"verify_key_files": ["/etc/server/a.pem", "/b.pem", 1], "directory": "d"},
        "own": {"file": "/etc/server/f"},
        "odd": {"files": 1},
    }


def test_tls_files_are_relative_to_the_file():
    raw = {
        "frontends": {
            "grpc": {"port": 1, "tls": {"key_file": "key.pem", "certificate-file": "/c.pem"}},
            "http": True,
        }
    }
    assert anchor_paths(raw, FOLDER)["frontends"] == {
        "grpc": {
            "port": 1,
            "tls": {"key_file": "/etc/server/key.pem", "certificate-file": "/c.pem"},
        },
        "http": True,
    }


@pytest.mark.parametrize("raw", [None, {}, {"id": "a"}])
def test_the_default_repository_is_relative_to_the_file(raw):
    assert anchor_paths(raw, FOLDER) == {
        **(raw or {}),
        "repositories": [{"url": "/etc/server/models"}],
    }


@pytest.mark.parametrize(
    "raw",
    [
        ["a"],
        "a",
        {"repositories": None},
        {"repositories": ["a", {"url": 3}, {}]},
        {"repositories": [], "logging": 3, "backend_directory": 3},
        {"repositories": [], "frontends": {"http": {"tls": 3}}},
        {"repositories": [], "frontends": 3},
        {"repositories": [], "cache": 3},
        {"repositories": [], "cache": {"redis": 3}},
    ],
)
def test_values_of_a_wrong_type_are_unchanged(raw):
    assert anchor_paths(raw, FOLDER) == raw


def test_an_empty_log_file_stays_empty():
    assert anchor_paths({"repositories": [], "logging": {"file": ""}}, FOLDER) == {
        "repositories": [],
        "logging": {"file": ""},
    }


def test_certificates_of_a_cache_are_relative_to_the_file():
    raw = {
        "cache": {
            "redis": {
                "host": "h",
                "cert": "c.pem",
                "key": "k.pem",
                "cacert": "/ca.pem",
                "cacert-dir": "cas",
            }
        }
    }
    assert anchor_paths(raw, FOLDER)["cache"]["redis"] == {
        "host": "h",
        "cert": "/etc/server/c.pem",
        "key": "/etc/server/k.pem",
        "cacert": "/ca.pem",
        "cacert-dir": "/etc/server/cas",
    }


def test_files_of_routers_and_operations_are_relative_to_the_file():
    raw = {
        "routers": {"traffic": {"state_file": "routes.json", "routes": {}}},
        "operations": {"own": {"file": "/a"}},
    }
    assert anchor_paths(raw, FOLDER)["routers"]["traffic"] == {
        "state_file": str(FOLDER / "routes.json"),
        "routes": {},
    }
    assert anchor_paths(raw, FOLDER)["operations"] == {"own": {"file": "/a"}}
