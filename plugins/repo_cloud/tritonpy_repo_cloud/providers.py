"""Arguments of fsspec's file systems for each cloud."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tritonpy import StartupError, Unavailable
from tritonpy.plugins import install_command
from tritonpy_repo_cloud.location import PROTOCOLS, Location
from tritonpy_repo_cloud.options import CloudOptions

Arguments = dict[str, Any]
UNSHARED: Mapping[str, Any] = {"skip_instance_cache": True, "use_listings_cache": False}
_IDENTITIES = ("key", "managed_identity", "default")


def check_installed(location: Location) -> None:
    """Import the file system; raise `StartupError` with installation instructions on failure."""
    from fsspec import get_filesystem_class

    try:
        get_filesystem_class(location.protocol)
    except ImportError as error:
        how = (
            install_command(f"tritonpy-repo-cloud[{location.scheme}]")
            if location.scheme in _CLOUDS
            else error
        )
        raise StartupError(
            f"model repository '{location.redacted_url}' needs a package that is not installed: "
            f"{how}"
        ) from error
    except ValueError as error:
        raise StartupError(
            f"model repository '{location.redacted_url}': no plugin provides "
            f"'{location.scheme}', and fsspec does not know it"
        ) from error


def connect(
    location: Location, credential: Mapping[str, str], options: CloudOptions
) -> tuple[Any, str]:
    """Return a new file system for `location` and its models folder, without sending a request.

    Raises `Unavailable` for an invalid credential, and the libraries' exceptions.
    """
    from fsspec.core import url_to_fs

    arguments = _CLOUDS.get(location.scheme, _other_arguments)(location, credential, options)
    arguments = merge_arguments({**arguments, **UNSHARED}, options.storage)
    if location.scheme not in _CLOUDS:
        file_system, root = url_to_fs(location.root, **arguments)
        return file_system, str(root).rstrip("/")
    file_system = _file_system_class(location.scheme)(**arguments)
    _disable_library_retries(file_system, location.scheme)
    return file_system, location.root


def _file_system_class(scheme: str) -> Any:
    if (
        scheme == "gs"
        # gcsfs's public class first requests the bucket's type, with another protocol and rights
        # that readers may lack
    ):
        from gcsfs.core import GCSFileSystem

        return GCSFileSystem
    from fsspec import get_filesystem_class

    return get_filesystem_class(PROTOCOLS[scheme])


def merge_arguments(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Arguments:
    """Return both mappings merged recursively; values of `theirs` take precedence."""
    result = dict(ours)
    for key, value in theirs.items():
        old = result.get(key)
        result[key] = (
            merge_arguments(old, value)
            if isinstance(old, Mapping) and isinstance(value, Mapping)
            else value
        )
    return result


def s3_arguments(
    location: Location, credential: Mapping[str, str], options: CloudOptions
) -> Arguments:
    """Use the credential's key, else its profile, else the library's own sources.

    The latter are files, environment variables and instance roles.
    """
    endpoint = location.endpoint or options.endpoint
    client = {"region_name": credential.get("region"), "endpoint_url": endpoint}
    config: Arguments = {
        "connect_timeout": options.connect_timeout_s,
        "read_timeout": options.read_timeout_s,
        "max_pool_connections": options.parallel + 2,
        "retries": {"total_max_attempts": 1, "mode": "standard"},
    }
    if endpoint:
        config["s3"] = {"addressing_style": "path"}
    arguments: Arguments = {
        "client_kwargs": {key: value for key, value in client.items() if value},
        "config_kwargs": config,
    }
    if "key_id" in credential and "secret_key" in credential:
        arguments |= {"key": credential["key_id"], "secret": credential["secret_key"]}
        if "session_token" in credential:
            arguments["token"] = credential["session_token"]
    elif "profile" in credential:
        arguments["profile"] = credential["profile"]
    return arguments


def gs_arguments(
    _location: Location, credential: Mapping[str, str], options: CloudOptions
) -> Arguments:
    """Use the credential's file, else the library's own sources.

    The latter are files, the instance's role, and anonymous access. Raises `Unavailable` if the
    file does not exist: the library would send its name to Google as a token.
    """
    path = credential.get("path")
    if path is not None and not Path(path).is_file():
        raise Unavailable(f"the Google account file '{path}' does not exist")
    return {
        "token": path,
        "access": "read_only",
        "endpoint_url": options.endpoint or None,
        "requests_timeout": _http_timeout(options),
        "session_kwargs": {"trust_env": True},
    }


def azure_arguments(
    location: Location, credential: Mapping[str, str], options: CloudOptions
) -> Arguments:
    """Use the credential selected by its auth_type, as in Triton.

    It is a key, the machine's identity, the library's default chain, or anonymous access.
    """
    kind = credential.get("auth_type", "")
    if kind and kind not in _IDENTITIES:
        raise Unavailable(
            f"unknown auth_type '{kind}' for Azure storage, use one of: {', '.join(_IDENTITIES)}"
        )
    account = credential.get("account_str", location.account)
    arguments: Arguments = {
        "account_name": account,
        "connection_timeout": options.connect_timeout_s,
        "read_timeout": options.read_timeout_s,
    }
    if options.endpoint:
        arguments |= _azure_endpoint(options.endpoint, account, credential.get("account_key", ""))
    if kind in {"managed_identity", "default"}:
        arguments["credential"] = _azure_identity(kind, credential.get("client_id"))
    elif "account_key" in credential:
        arguments["account_key"] = credential["account_key"]
    else:
        arguments["anon"] = True
    return arguments


def _azure_endpoint(endpoint: str, account: str, key: str) -> Arguments:
    """The file system accepts only a TLS host name.

    A connection string with a key may have any URL.
    """
    if not key:
        return {"account_host": endpoint.removeprefix("https://")}
    parts = {"BlobEndpoint": endpoint, "AccountName": account, "AccountKey": key}
    return {"connection_string": ";".join(f"{name}={value}" for name, value in parts.items())}


def _azure_identity(kind: str, client_id: str | None) -> Any:
    from azure.identity import aio

    if kind == "default":
        return aio.DefaultAzureCredential()
    return (
        aio.ManagedIdentityCredential(client_id=client_id)
        if client_id
        else aio.ManagedIdentityCredential()
    )


def _other_arguments(
    location: Location, _credential: Mapping[str, str], options: CloudOptions
) -> Arguments:
    if location.protocol in {"http", "https"}:
        return {"client_kwargs": {"trust_env": True, "timeout": _http_timeout(options)}}
    return {}


def _http_timeout(options: CloudOptions) -> Any:
    from aiohttp import ClientTimeout

    return ClientTimeout(
        total=None, sock_connect=options.connect_timeout_s, sock_read=options.read_timeout_s
    )


_CLOUDS = {"s3": s3_arguments, "gs": gs_arguments, "as": azure_arguments}


def _disable_library_retries(file_system: Any, scheme: str) -> None:
    """Disable the libraries' own retries, which take up to minutes.

    `ObjectStore` retries as configured.
    """
    if scheme == "s3":
        file_system.retries = 1
    elif scheme == "gs":
        once = type(file_system)._request.__wrapped__
        file_system._request = once.__get__(file_system)
    else:
        file_system.service_client._config.retry_policy.total_retries = 0
