"""Credentials of a repository, from Triton's credential file or environment variables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tritonpy import Unavailable

FILE_VARIABLE = "TRITON_CLOUD_CREDENTIAL_PATH"
VARIABLES: Mapping[str, Mapping[str, str]] = {
    "s3": {
        "key_id": "AWS_ACCESS_KEY_ID",
        "secret_key": "AWS_SECRET_ACCESS_KEY",
        "session_token": "AWS_SESSION_TOKEN",
        "region": "AWS_DEFAULT_REGION",
        "profile": "AWS_PROFILE",
    },
    "gs": {"path": "GOOGLE_APPLICATION_CREDENTIALS"},
    "as": {
        "account_str": "AZURE_STORAGE_ACCOUNT",
        "account_key": "AZURE_STORAGE_KEY",
        "auth_type": "AZURE_STORAGE_AUTH_TYPE",
        "client_id": "AZURE_STORAGE_CLIENT_ID",
    },
}
"""Fields of a credential in the file and their environment variables, by URL scheme."""


def credential_for(scheme: str, url: str, environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the nonempty fields of the credential for `url`.

    If a credential file is set, the other variables are ignored, as in Triton. Raises `Unavailable`
    if the file is unreadable or has no credential for the URL.
    """
    if scheme not in VARIABLES:
        return {}
    file = environment.get(FILE_VARIABLE)
    if file is None:
        found: Mapping[str, str] = {
            field: environment.get(variable, "") for field, variable in VARIABLES[scheme].items()
        }
    else:
        found = _fields(scheme, _chosen(_entries(file, scheme), url, file), file)
    return {field: value for field, value in found.items() if value}


def longest_prefix(prefixes: Mapping[str, Any], url: str) -> str | None:
    """Return the longest of `prefixes` that `url` begins with, or None."""
    return max((prefix for prefix in prefixes if url.startswith(prefix)), key=len, default=None)


def _entries(file: str, scheme: str) -> Mapping[str, Any]:
    try:
        content = json.loads(Path(file).read_bytes())
    except OSError as error:
        raise Unavailable(
            f"the credential file {file} ({FILE_VARIABLE}) cannot be read: {error.strerror}"
        ) from error
    except ValueError as error:
        raise Unavailable(
            f"the credential file {file} ({FILE_VARIABLE}) is not valid JSON: {error}"
        ) from error
    entries = content.get(scheme, {}) if isinstance(content, dict) else None
    if not isinstance(entries, dict):
        raise Unavailable(
            f'the credential file {file} must be of the form {{"{scheme}": '
            f'{{"{scheme}://prefix": …}}}}'
        )
    return entries


def _chosen(entries: Mapping[str, Any], url: str, file: str) -> Any:
    prefix = longest_prefix(entries, url)
    if prefix is None:
        raise Unavailable(
            f"Cannot match credential for path  {url}: {file} has no credential for this prefix"
        )
    return entries[prefix]


def _fields(scheme: str, entry: Any, file: str) -> Mapping[str, str]:
    if scheme == "gs" and isinstance(entry, str):
        return {"path": entry}
    if scheme == "gs" or not isinstance(entry, dict):
        form = (
            "the path of a file"
            if scheme == "gs"
            else f"an object with {', '.join(VARIABLES[scheme])}"
        )
        raise Unavailable(
            f"the credential file {file}: a credential under '{scheme}' must be {form}"
        )
    return {field: str(entry[field]) for field in VARIABLES[scheme] if entry.get(field) is not None}
