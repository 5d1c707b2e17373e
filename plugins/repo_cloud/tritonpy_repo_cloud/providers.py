"""What fsspec's file systems are told, cloud by cloud."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tritonpy import StartupError, Unavailable, install_command
from tritonpy_repo_cloud.location import PROTOCOLS, Location
from tritonpy_repo_cloud.options import CloudOptions

Arguments = dict[str, Any]
NOT_SHARED: Mapping[str, Any] = {"skip_instance_cache": True, "use_listings_cache": False}
_IDENTITIES = ("key", "managed_identity", "default")


def check_installed(location: Location) -> None:
    """Import the file system. Raises StartupError that says what to install."""
    from fsspec import get_filesystem_class

    try:
        get_filesystem_class(location.protocol)
    except ImportError as error:
        how = install_command(f"tritonpy-repo-cloud[{location.scheme}]") if location.scheme in _CLOUDS else error
        raise StartupError(
            f"model repository '{location.shown}' needs a package that is not installed: {how}"
        ) from error
    except ValueError as error:
        raise StartupError(
            f"model repository '{location.shown}': no plugin provides '{location.scheme}', and fsspec does not know it"
        ) from error


def connect(location: Location, credential: Mapping[str, str], options: CloudOptions) -> tuple[Any, str]:
    """Return a file system for `location` that nobody else uses, and the folder of the models in it; nothing is sent yet.

    Raises Unavailable for a credential that means nothing, and what the libraries raise.
    """
    from fsspec.core import url_to_fs

    arguments = _CLOUDS.get(location.scheme, _other)(location, credential, options)
    arguments = merged({**arguments, **NOT_SHARED}, options.storage)
    if location.scheme not in _CLOUDS:
        file_system, root = url_to_fs(location.root, **arguments)
        return file_system, str(root).rstrip("/")
    file_system = _file_system_class(location.scheme)(**arguments)
    _leave_retrying_to_us(file_system, location.scheme)
    return file_system, location.root


def _file_system_class(scheme: str) -> Any:
    if (
        scheme == "gs"
    ):  # what the package shows asks for the kind of bucket first, by another protocol and with rights that readers may not have
        from gcsfs.core import GCSFileSystem

        return GCSFileSystem
    from fsspec import get_filesystem_class

    return get_filesystem_class(PROTOCOLS[scheme])


def merged(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Arguments:
    """Return both, those of `theirs` first; mappings in them are merged too."""
    result = dict(ours)
    for key, value in theirs.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result


def s3_arguments(location: Location, credential: Mapping[str, str], options: CloudOptions) -> Arguments:
    """A key in the credential, else a profile, else what the library finds: its own files and variables, and instance roles."""
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


def gs_arguments(_location: Location, credential: Mapping[str, str], options: CloudOptions) -> Arguments:
    """The file that the credential names, else what the library finds: its own files, the instance's role, no credential at all.

    Raises Unavailable for a file that is not there: the library would take its name for a token, and send it to Google.
    """
    path = credential.get("path")
    if path is not None and not Path(path).is_file():
        raise Unavailable(f"the account file for Google '{path}' is not there")
    return {
        "token": path,
        "access": "read_only",
        "endpoint_url": options.endpoint or None,
        "requests_timeout": _http_timeout(options),
        "session_kwargs": {"trust_env": True},
    }


def azure_arguments(location: Location, credential: Mapping[str, str], options: CloudOptions) -> Arguments:
    """A key, the identity of the machine, the library's own chain, or no credential at all, as in Triton."""
    kind = credential.get("auth_type", "")
    if kind and kind not in _IDENTITIES:
        raise Unavailable(f"there is no auth_type '{kind}' of Azure storage, it is one of: {', '.join(_IDENTITIES)}")
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
    """The file system takes a plain host alone, over TLS; what it is told with a key may be any URL."""
    if not key:
        return {"account_host": endpoint.removeprefix("https://")}
    parts = {"BlobEndpoint": endpoint, "AccountName": account, "AccountKey": key}
    return {"connection_string": ";".join(f"{name}={value}" for name, value in parts.items())}


def _azure_identity(kind: str, client_id: str | None) -> Any:
    from azure.identity import aio

    if kind == "default":
        return aio.DefaultAzureCredential()
    return aio.ManagedIdentityCredential(client_id=client_id) if client_id else aio.ManagedIdentityCredential()


def _other(location: Location, _credential: Mapping[str, str], options: CloudOptions) -> Arguments:
    if location.protocol in {"http", "https"}:
        return {"client_kwargs": {"trust_env": True, "timeout": _http_timeout(options)}}
    return {}


def _http_timeout(options: CloudOptions) -> Any:
    from aiohttp import ClientTimeout

    return ClientTimeout(total=None, sock_connect=options.connect_timeout_s, sock_read=options.read_timeout_s)


_CLOUDS = {"s3": s3_arguments, "gs": gs_arguments, "as": azure_arguments}


def _leave_retrying_to_us(file_system: Any, scheme: str) -> None:
    """Each library has a patience of its own, from seconds to minutes: ours is the one that is configured and can be interrupted."""
    if scheme == "s3":
        file_system.retries = 1
    elif scheme == "gs":
        once = type(file_system)._request.__wrapped__
        file_system._request = once.__get__(file_system)
    else:
        file_system.service_client._config.retry_policy.total_retries = 0
