from __future__ import annotations

import pytest

from tritonpy_cache_redis.options import RedisCacheOptions
from tritonpy_config.server import InvalidServerConfig, decode_options

ADDRESS = {"host": "redis", "port": "6379"}


def decoded(**raw):
    return decode_options(RedisCacheOptions, raw, "cache.redis")


def test_triton_s_option_names_are_accepted():
    found = decoded(
        **ADDRESS, user="u", password="p", db="2", connect_timeout="5", socket_timeout="6", pool_size="7", wait_timeout="8",
        tls_enabled="true", cert="c", key="k", cacert="a", cacert_dir="d", sni="n",
    )  # fmt: skip
    assert (found.host, found.port, found.user, found.password, found.db) == (
        "redis",
        6379,
        "u",
        "p",
        2,
    )
    assert (found.connect_timeout, found.socket_timeout, found.pool_size, found.wait_timeout) == (
        5,
        6,
        7,
        8,
    )
    assert found.tls_enabled
    assert [str(each) for each in (found.cert, found.key, found.cacert, found.cacert_dir)] == [
        "c",
        "k",
        "a",
        "d",
    ]
    assert found.sni == "n"


def test_the_pool_timeout_is_triton_s():
    assert decoded(**ADDRESS).wait_timeout == 1000


@pytest.mark.parametrize("raw", [{}, {"host": "redis"}, {"port": 1}, {"host": "", "port": 1}])
def test_an_address_is_required(raw):
    with pytest.raises(
        InvalidServerConfig, match="Failed to initialize RedisCache, didn't specify address"
    ):
        decoded(**raw)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({"cert": "c"}, "'cert' and 'key' must be given together"),
        ({"tls_enabled": True, "key": "k"}, "'cert' and 'key' must be given together"),
        ({"cacert": "a"}, "need 'tls_enabled'"),
        ({"sni": "n"}, "need 'tls_enabled'"),
        ({"pool_size": 0}, "pool_size"),
        ({"port": 70000}, "port"),
        ({"socket_timeout": -1}, "socket_timeout"),
        ({"deadline": 0}, "deadline"),
        ({"passwort": "p"}, "passwort"),
    ],
)
def test_invalid_options_are_rejected(raw, text):
    with pytest.raises(InvalidServerConfig, match=text):
        decoded(**ADDRESS | raw)


@pytest.mark.parametrize("password", [123456, "123456"])
def test_a_password_may_look_like_a_number(password):
    assert str(decoded(**ADDRESS, password=password).password) == "123456"


def test_errors_do_not_show_the_password():
    with pytest.raises(InvalidServerConfig) as caught:
        decoded(host="h", port="x", password=987654321)
    assert "987654321" not in str(caught.value)
