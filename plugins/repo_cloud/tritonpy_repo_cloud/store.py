"""Access to a store with retries and renewed credentials."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from tritonpy import Unavailable
from tritonpy.repository import redact_urls
from tritonpy_repo_cloud.backoff import RetryBackoff
from tritonpy_repo_cloud.credentials import credential_for
from tritonpy_repo_cloud.location import PROTOCOLS, Location
from tritonpy_repo_cloud.options import CloudOptions
from tritonpy_repo_cloud.providers import check_installed, connect
from tritonpy_repo_cloud.remote_file import RemoteFile, remote_files
from tritonpy_repo_cloud.store_errors import FailureKind, StoreError, classify_error, error_text

log = logging.getLogger("tritonpy.repository")
Result = TypeVar("Result")

_BACKOFF = RetryBackoff(first_s=0.25, longest_s=8.0)


class ObjectStore:
    """Files below a location, read through fsspec; thread-safe.

    Every method raises `StoreError` if the store fails, and `Unavailable` once `stopped` is set.
    """

    def __init__(self, location: Location, options: CloudOptions, stopped: threading.Event) -> None:
        check_installed(location)
        self._location = location
        self._options = options
        self._stopped = stopped
        self._guard = threading.Lock()
        self._connection: tuple[Any, str] | None = None

    def files(self, folder: str = "") -> list[RemoteFile]:
        """Return all files of one model or of the repository.

        Paths are relative to the repository.
        """

        def ask(file_system: Any, root: str) -> list[RemoteFile]:
            top = f"{root}/{folder}" if folder else root
            file_system.invalidate_cache()
            found = file_system.find(top, withdirs=True, detail=True)
            if not found:
                self._check_root(file_system, root)
            files = remote_files(root, found)
            return [self._with_size(file_system, file) for file in files]

        return self._call("be listed", ask)

    def read(self, file: RemoteFile, start: int, end: int) -> bytes:
        """Return the bytes of a file from `start` up to `end`."""

        def ask(file_system: Any, _root: str) -> bytes:
            data = bytes(file_system.cat_file(file.address, start=start, end=end))
            if len(data) != end - start:
                raise ConnectionError(f"{len(data)} bytes received instead of {end - start}")
            return data

        return self._call(f"be read ({file.path})", ask)

    def has_ranges(self, file: RemoteFile) -> bool:
        """Return whether the store can read parts of this file; not every web server can."""
        if self._location.protocol not in {"http", "https"}:
            return True
        return self._call(
            f"be read ({file.path})",
            lambda file_system, _root: bool(file_system.info(file.address).get("partial")),
        )

    def has_content_checksum(self, file: RemoteFile) -> bool:
        """Return whether the checksum of `file` is that of its content.

        Amazon's ETag is not, if the content is encrypted with a customer key.
        """
        if self._location.scheme in {"gs", "as"} or file.checksum is None:
            return file.checksum is not None
        if self._location.scheme != "s3":  # its ETag may look like an MD5 without being one
            return False

        def ask(file_system: Any, _root: str) -> bool:
            bucket, key, _ = file_system.split_path(file.address)
            head = file_system.call_s3("head_object", Bucket=bucket, Key=key)
            return (
                head.get("ServerSideEncryption", "AES256") == "AES256"
                and "SSECustomerAlgorithm" not in head
            )

        return self._call(f"be read ({file.path})", ask)

    def close(self) -> None:
        """Drop the connection."""
        self._connection = None

    def _call(self, what: str, call: Callable[[Any, str], Result]) -> Result:
        failures, renewed = 0, False
        while not self._stopped.is_set():
            connection = None
            try:
                connection = self._connect_once()
                return call(*connection)
            except Exception as error:
                kind, reason = _classify(error)
                if kind is FailureKind.DENIED and not renewed:
                    renewed = True
                    self._drop_connection(connection)
                    continue
                failures += 1
                if kind is not FailureKind.UNREACHABLE or failures >= self._options.attempts:
                    raise self._failure(kind, what, reason) from error
                log.debug(
                    "model repository '%s' cannot %s, trying again: %s",
                    self._location.redacted_url,
                    what,
                    reason,
                )
            self._stopped.wait(_BACKOFF.jittered_delay_s(failures))
        raise Unavailable("Server exiting")

    def _connect_once(self) -> tuple[Any, str]:
        with self._guard:
            if self._connection is None:
                location = self._location
                credential = credential_for(location.scheme, location.url, os.environ)
                self._connection = connect(location, credential, self._options)
            return self._connection

    def _drop_connection(self, refused: tuple[Any, str] | None) -> None:
        """Drop the connection `refused`, so that credentials are read again."""
        with self._guard:
            if self._connection is refused:
                self._connection = None

    def _failure(self, kind: FailureKind, what: str, reason: str) -> StoreError:
        text = (
            f"model repository '{self._location.redacted_url}' cannot {what}: {kind.value}: "
            f"{reason}"
        )
        if kind is FailureKind.DENIED:
            text += "; check its credentials"
        return StoreError(kind, text)

    def _check_root(self, file_system: Any, root: str) -> None:
        """Raise `FileNotFoundError` if the bucket does not exist.

        An empty listing does not show that.
        """
        top = root.partition("/")[0] if self._location.scheme in PROTOCOLS else root
        file_system.ls(top, detail=False)

    @staticmethod
    def _with_size(file_system: Any, file: RemoteFile) -> RemoteFile:
        """Return the file with its size; some stores list only names."""
        if file.size is not None:
            return file
        info = file_system.info(file.address)
        (found,) = remote_files(file.address.removesuffix(file.path), {file.address: info})
        return replace(found, path=file.path, address=file.address)


def _classify(error: Exception) -> tuple[FailureKind, str]:
    if isinstance(
        error, Unavailable
    ):  # our own error: a credential problem, which new credentials may solve
        return FailureKind.DENIED, error.message
    return classify_error(error), redact_urls(error_text(error))
