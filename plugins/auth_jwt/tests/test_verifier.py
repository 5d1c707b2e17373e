from __future__ import annotations

import json
import time

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_auth_jwt.verifier import UnknownKey

from .signing import (
    SECRET,
    claims,
    encoded,
    forged,
    key_set,
    private_key,
    public_jwk,
    secret_jwk,
    token,
    verifier,
)

RSA_SET = key_set(public_jwk("RSA", "r"))
RSA = verifier(RSA_SET)


@pytest.mark.parametrize(
    ("algorithm", "key", "jwk"),
    [
        ("RS256", "RSA", "RSA"), ("RS512", "RSA", "RSA"), ("PS256", "RSA", "RSA"), ("ES256", "EC", "EC"), ("EdDSA", "OKP", "OKP"),
        ("HS256", SECRET, None), ("HS512", SECRET * 2, None),
    ],
)  # fmt: skip
def test_a_valid_token_of_each_algorithm(algorithm, key, jwk):
    own = secret_jwk(key, kid="k") if jwk is None else public_jwk(jwk, "k")
    signer = key if jwk is None else private_key(key)
    payload = claims()
    assert (
        verifier(key_set(own), algorithm).claims(token(payload, signer, algorithm, kid="k"))
        == payload
    )
    assert verifier(key_set(own), algorithm).claims(token(payload, signer, algorithm)) == payload


TIMES = {
    "expired": {"exp": time.time() - 1},
    "never expires": {"exp": None},
    "expiry is text": {"exp": "later"},
    "not yet": {"nbf": time.time() + 86400},
    "from the future": {"iat": time.time() + 86400},
    "no name": {"sub": None},
    "unknown number": {"sub": 7},
    "audience": {"aud": "somebody"},
}


@pytest.mark.parametrize("changed", TIMES.values(), ids=TIMES)
def test_invalid_claims_are_rejected(changed):
    assert RSA.claims(token(claims(**changed))) is None


def test_clocks_may_differ_by_the_leeway():
    late = claims(exp=time.time() - 5, nbf=time.time() + 5)
    assert verifier(RSA_SET, leeway_s=30).claims(token(late)) == late


@pytest.mark.parametrize(
    ("configured", "payload", "good"),
    [
        ({"issuer": "https://a"}, {"iss": "https://a"}, True),
        ({"issuer": "https://a"}, {"iss": "https://b"}, False),
        ({"issuer": "https://a"}, {}, False),
        ({"audience": "tritonpy"}, {"aud": ["other", "tritonpy"]}, True),
        ({"audience": "tritonpy"}, {"aud": "tritonpy2"}, False),
        ({"audience": "tritonpy"}, {}, False),
        ({"name_claim": "client_id"}, {"client_id": "ci"}, True),
        ({"name_claim": "client_id"}, {}, False),
    ],
)
def test_issuer_audience_and_name_are_required(configured, payload, good):
    assert (verifier(RSA_SET, **configured).claims(token(claims(**payload))) is not None) is good


def test_an_unconfigured_algorithm_is_rejected():
    signed = token(algorithm="RS512")
    assert RSA.claims(signed) is None
    assert verifier(RSA_SET, "RS512").claims(signed)


@pytest.mark.parametrize("name", ["none", "None", "NONE", "", None, [], {}, ["RS256"], 7, True])
@pytest.mark.parametrize("signature", [b"", b"x"])
def test_a_token_cannot_choose_to_be_unsigned(name, signature):
    assert RSA.claims(forged({"alg": name, "typ": "JWT"}, signature=signature)) is None
    assert RSA.claims(f"{encoded({'alg': name})}.{encoded(claims())}.") is None


@pytest.mark.parametrize("algorithms", [("RS256",), ("RS256", "HS256")])
@pytest.mark.parametrize("form", ["PEM", "DER", "JWK", "modulus"])
def test_a_public_key_is_not_used_as_a_shared_secret(algorithms, form):
    """The attack that swaps RS256 for HS256 must fail even if both algorithms are configured."""
    public = private_key("RSA").public_key()
    secret = {
        "PEM": public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "DER": public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        "JWK": json.dumps(public_jwk("RSA", "r")).encode(),
        "modulus": public_jwk("RSA")["n"].encode(),
    }[form]
    import hashlib
    import hmac

    head = f"{encoded({'alg': 'HS256', 'typ': 'JWT'})}.{encoded(claims())}"
    swapped = f"{head}.{encoded(hmac.digest(secret, head.encode(), hashlib.sha256))}"
    assert (
        verifier(key_set(public_jwk("RSA", "r"), secret_jwk()), *algorithms).claims(swapped) is None
    )


def test_a_key_in_the_token_is_ignored():
    own = public_jwk("RSA", "mine", number=1)
    for header in (
        {"jwk": own},
        {"jku": "http://127.0.0.1:9/set"},
        {"x5u": "http://127.0.0.1:9/x"},
    ):
        assert RSA.claims(token(key=private_key("RSA", 1), **header)) is None


def test_a_key_of_another_name_is_not_tried():
    two = verifier(key_set(public_jwk("RSA", "r"), public_jwk("RSA", "s", number=1)))
    assert two.claims(token(kid="r"))
    assert two.claims(token(kid="s")) is None
    assert two.claims(token(key=private_key("RSA", 1)))  # without a key id each key is tried


def test_an_unknown_key_is_reported():
    for kid in ("other", "../r", "r' OR 1"):
        with pytest.raises(UnknownKey):
            RSA.claims(token(kid=kid))


def test_a_changed_token_is_invalid():
    header, payload, signature = token().split(".")
    other = encoded(claims(sub="root"))
    for changed in (
        f"{header}.{other}.{signature}",
        f"{header}.{payload}.{signature[:-8]}",
        f"{header}.{payload}.{signature[:-4]}AAAA",
    ):
        assert RSA.claims(changed) is None


@pytest.mark.parametrize(
    "header",
    [
        {"crit": ["exp"]},
        {"b64": False},
        {"b64": False, "crit": ["b64"]},
        {"kid": ["r"]},
        {"kid": {}},
    ],
)
def test_headers_that_would_change_the_meaning(header):
    good = token().split(".")
    assert RSA.claims(forged({"alg": "RS256", **header})) is None
    assert RSA.claims(f"{encoded({'alg': 'RS256', **header})}.{good[1]}.{good[2]}") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        "a.b",
        "a.b.c.d",
        "a.b.c, Bearer d.e.f",
        "é.é.é",
        "a.b.c\n",
        "=.=.=",
        "." * 8000,
    ],
)
def test_malformed_tokens_are_rejected(text):
    assert RSA.claims(text) is None


@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=60))
def test_random_parts_are_rejected_without_errors(header, payload, signature):
    assert (
        RSA.claims(".".join(map(encoded, (header or b"x", payload or b"x", signature or b"x"))))
        is None
    )


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "b64"]), inner)
        ),
    )
)
def test_random_headers_are_rejected_without_errors(header):
    try:
        assert RSA.claims(forged(header)) is None
    except UnknownKey:
        assert header["alg"] == "RS256"
