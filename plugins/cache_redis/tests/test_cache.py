from __future__ import annotations

import logging
import secrets
from typing import ClassVar

import numpy as np
import pytest
from redis import Redis
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as TooLate

import tritonpy_cache_redis
from tritonpy import StartupError, Tensor
from tritonpy_cache_redis.cache import RedisCache
from tritonpy_cache_redis.connections import PASSWORD, USER
from tritonpy_cache_redis.options import RedisCacheOptions
from tritonpy_config.server import decode_options
from tritonpy_testing import CacheContract

KEY = bytes(range(32))
SECRET = "correct-horse-battery-staple"
NO_LOGIN = ["user default off"]


def outputs(*values):
    return [Tensor.from_numpy("OUT", np.array(values, np.float32))]


def values(found):
    return found and found[0].numpy().tolist()


def stored(cache):
    """Insert and look up. Return the result."""
    cache.insert(KEY, outputs(1, 2))
    return values(cache.lookup(KEY))


class TestRedisCache(CacheContract):
    plugin = tritonpy_cache_redis
    plugin_class = RedisCache
    name = "redis"
    options: ClassVar = {"host": "127.0.0.1", "port": 1}

    @pytest.fixture(autouse=True)
    def _server(self, redis):
        self._port = redis().port

    def make_options(self):
        # a separate prefix makes the cache empty
        raw = {**self.options, "port": self._port, "prefix": secrets.token_hex(4)}
        return decode_options(RedisCacheOptions, raw, "options")


def test_two_servers_share_responses(redis, connect):
    server = redis()
    one, other = connect(server), connect(server)
    one.insert(KEY, outputs(1, 2))
    assert values(other.lookup(KEY)) == [1, 2]


def test_another_prefix_or_database_is_another_cache(redis, connect):
    server = redis()
    connect(server).insert(KEY, outputs(1))
    assert connect(server, prefix="other:").lookup(KEY) is None
    assert connect(server, db=3).lookup(KEY) is None


def test_keys_have_the_prefix_and_are_readable(redis, connect):
    server = redis()
    connect(server, prefix="mine:").insert(KEY, outputs(1))
    with Redis(port=server.port) as client:
        assert client.keys() == [b"mine:" + KEY.hex().encode()]
        assert client.ttl(client.keys()[0]) == -1


def test_a_response_expires(redis, connect):
    server = redis()
    connect(server, ttl=1000).insert(KEY, outputs(1))
    with Redis(port=server.port) as client:
        assert 990 < client.ttl(client.keys()[0]) <= 1000


def test_an_invalid_value_is_a_miss_that_is_logged_once_and_overwritten(redis, connect, caplog):
    server = redis()
    cache = connect(server)
    cache.insert(KEY, outputs(1, 2))
    with Redis(port=server.port) as client:
        (name,) = client.keys()
        whole = client.get(name)
        for broken in (
            b"",
            b"nonsense",
            whole[:-1],
            whole[:20] + b"\x00" + whole[21:],
            whole.replace(b"\x01", b"\x02", 1),
        ):
            client.set(name, broken)
            assert cache.lookup(KEY) is None
    assert caplog.text.count("ignoring a value in Redis") == 1
    assert stored(cache) == [1, 2]


def test_a_value_of_another_redis_type_raises_an_error(redis, connect):
    server = redis()
    cache = connect(server)
    with Redis(port=server.port) as client:
        client.hset("tritonpy:" + KEY.hex(), "a", "b")
    with pytest.raises(RedisError):
        cache.lookup(KEY)


# --- Login


def test_a_password_is_accepted(redis, connect):
    assert stored(connect(redis(f"requirepass {SECRET}"), password=SECRET)) == [1, 2]


def test_a_user_needs_only_get_and_set_on_its_keys(redis, connect):
    server = redis(*NO_LOGIN, f"user alice on >{SECRET} ~tritonpy:* +get +set")
    assert stored(connect(server, user="alice", password=SECRET)) == [1, 2]


def test_user_and_password_come_from_the_environment_unless_they_are_configured(
    redis, connect, monkeypatch
):
    server = redis(*NO_LOGIN, f"user alice on >{SECRET} ~* +@all", "user bob on >other ~* +@all")
    monkeypatch.setenv(USER, "alice")
    monkeypatch.setenv(PASSWORD, SECRET)
    assert stored(connect(server)) == [1, 2]
    assert stored(connect(server, user="bob", password="other")) == [1, 2]


@pytest.mark.parametrize(
    "login",
    [
        {},
        {"password": "wrong-secret"},
        {"user": "alice", "password": "wrong-secret"},
        {"user": "eve", "password": "wrong-secret"},
    ],
)
def test_a_rejected_login_fails_the_start_and_shows_no_secret(redis, connect, caplog, login):
    server = redis(f"requirepass {SECRET}", f"user alice on >{SECRET} ~* +@all")
    with (
        caplog.at_level(logging.DEBUG),
        pytest.raises(StartupError, match="Failed to initialize RedisCache") as caught,
    ):
        connect(server, **login)
    for text in (str(caught.value), caplog.text):
        assert "wrong-secret" not in text
        assert SECRET not in text


def test_a_user_without_the_right_fails_the_start(redis, connect):
    server = redis(*NO_LOGIN, f"user alice on >{SECRET} ~others:* +get +set")
    with pytest.raises(StartupError, match="Failed to initialize RedisCache"):
        connect(server, user="alice", password=SECRET)


def test_an_unknown_database_fails_the_start(redis, connect):
    with pytest.raises(StartupError, match="DB index"):
        connect(redis(), db=99)


# --- TLS


def test_a_certificate_is_checked_against_the_host(redis, connect, certificates):
    server = redis(*certificates.settings())
    assert stored(connect(server, tls_enabled=True, cacert=str(certificates.authority))) == [1, 2]


def test_a_certificate_may_have_a_configured_name(redis, connect, certificates):
    server = redis(*certificates.settings())
    tls = {"tls_enabled": True, "cacert": str(certificates.authority)}
    assert stored(connect(server, sni="redis.test", **tls)) == [1, 2]
    with pytest.raises(StartupError, match="certificate"):
        connect(server, sni="other.test", **tls)


def test_an_untrusted_certificate_fails_the_start(redis, connect, certificates):
    server = redis(*certificates.settings())
    with pytest.raises(StartupError, match=r"(?i)certificate"):
        connect(server, tls_enabled=True, cacert=str(certificates.stranger))


def test_redis_may_require_a_certificate_and_a_password(redis, connect, certificates):
    server = redis(*certificates.settings("yes"), f"requirepass {SECRET}")
    chain, key = map(str, certificates.client)
    tls = {"tls_enabled": True, "cacert": str(certificates.authority), "password": SECRET}
    assert stored(connect(server, cert=chain, key=key, **tls)) == [1, 2]
    with pytest.raises(StartupError):
        connect(server, **tls)


def test_a_folder_of_authorities_is_accepted(redis, connect, certificates, tmp_path):
    server = redis(*certificates.settings())
    folder = tmp_path / "authorities"
    folder.mkdir()
    with pytest.raises(StartupError):
        connect(server, tls_enabled=True, cacert_dir=str(folder))


@pytest.mark.parametrize("file", ["missing.pem", "nonsense.pem"])
def test_invalid_tls_files_fail_the_start(redis, connect, tmp_path, file):
    (tmp_path / "nonsense.pem").write_text("nonsense")
    with pytest.raises(StartupError, match="invalid TLS files"):
        connect(redis(), tls_enabled=True, cacert=str(tmp_path / file))


# --- Outages


def test_the_server_starts_without_redis(redis, connect, caplog):
    server = redis()
    server.kill()
    cache = connect(server)
    assert "is not available yet" in caplog.text
    with pytest.raises(RedisError):
        cache.lookup(KEY)
    server.start()
    assert stored(cache) == [1, 2]


def test_a_lost_connection_is_reopened(redis, connect):
    server = redis()
    cache = connect(server)
    assert stored(cache) == [1, 2]
    server.kill()
    server.start()
    assert cache.lookup(KEY) is None
    assert stored(cache) == [1, 2]


def test_calls_to_a_hanging_redis_time_out(redis, connect):
    server = redis()
    cache = connect(server, socket_timeout=3_000)  # also applies to the response below
    server.suspend()
    try:
        with pytest.raises(TooLate):
            cache.lookup(KEY)
    finally:
        server.resume()
    assert stored(cache) == [1, 2]


def test_a_full_redis_rejects_insertions_and_serves_lookups(redis, connect):
    cache = connect(redis("maxmemory 1", "maxmemory-policy noeviction"))
    with pytest.raises(RedisError):
        cache.insert(KEY, outputs(1))
    assert cache.lookup(KEY) is None


def test_threads_and_deadline_follow_from_the_options(redis, connect):
    cache = connect(redis(), pool_size=7, deadline=25)
    assert (cache.threads, cache.deadline_ms, cache.blocking, cache.shared) == (7, 25, True, True)
