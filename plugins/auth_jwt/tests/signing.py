"""Keys of each kind, and tokens signed with them."""

from __future__ import annotations

import base64
import json
import time
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from tritonpy_auth_jwt.options import JwtOptions
from tritonpy_auth_jwt.verifier import Verifier

SECRET = b"a secret of thirty-two bytes and more"


def private_key(kind: str, number: int = 0) -> Any:
    return _made(kind, number)


@cache
def _made(kind: str, number: int) -> Any:
    if kind == "RSA":
        return rsa.generate_private_key(65537, 2048)
    return (
        ec.generate_private_key(ec.SECP256R1())
        if kind == "EC"
        else ed25519.Ed25519PrivateKey.generate()
    )


def public_jwk(
    kind: str, kid: str | None = None, number: int = 0, **members: Any
) -> dict[str, Any]:
    algorithm = {
        "RSA": jwt.algorithms.RSAAlgorithm,
        "EC": jwt.algorithms.ECAlgorithm,
        "OKP": jwt.algorithms.OKPAlgorithm,
    }[kind]
    found = json.loads(algorithm.to_jwk(private_key(kind, number).public_key()))
    found.pop("key_ops", None)
    return {**found, **({"kid": kid} if kid else {}), **members}


def secret_jwk(secret: bytes = SECRET, **members: Any) -> dict[str, Any]:
    return {"kty": "oct", "k": base64.urlsafe_b64encode(secret).rstrip(b"=").decode(), **members}


def key_set(*keys: dict[str, Any]) -> str:
    return json.dumps({"keys": keys})


def claims(**changed: Any) -> dict[str, Any]:
    """Return the claims of a valid token. None omits a claim."""
    payload = {
        "sub": "anna",
        "exp": time.time() + 3600,
        "tritonpy": {"infer": ["digits*"]},
        **changed,
    }
    return {name: value for name, value in payload.items() if value is not None}


def token(
    payload: dict[str, Any] | None = None, key: Any = None, algorithm: str = "RS256", **headers: Any
) -> str:
    return jwt.encode(payload or claims(), key or private_key("RSA"), algorithm, headers or None)


def encoded(part: Any) -> str:
    raw = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def forged(header: dict[str, Any], payload: Any = None, signature: bytes = b"x") -> str:
    """Return a token that no library would create."""
    return f"{encoded(header)}.{encoded(payload or claims())}.{encoded(signature)}"


def options(*algorithms: str, **more: Any) -> JwtOptions:
    return JwtOptions(algorithms=algorithms or ("RS256",), **{"jwks_file": "unused", **more})


def verifier(text: str, *algorithms: str, **more: Any) -> Verifier:
    from tritonpy_auth_jwt.key_set import parse_key_set

    chosen = options(*algorithms, **more)
    return Verifier(parse_key_set(text, chosen.algorithms), chosen)
