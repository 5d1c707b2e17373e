"""A store: what a repository asks it for, again where that may help, and with fresh credentials where they were refused."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from tritonpy import Unavailable, without_secrets
from tritonpy_repo_cloud.credentials import credential_for
from tritonpy_repo_cloud.failure import Kind, StoreFailure, kind_of, text_of
from tritonpy_repo_cloud.location import PROTOCOLS, Location
from tritonpy_repo_cloud.options import CloudOptions
from tritonpy_repo_cloud.pausing import Pauses
from tritonpy_repo_cloud.providers import check_installed, connect
from tritonpy_repo_cloud.remote_file import RemoteFile, remote_files

log = logging.getLogger("tritonpy.repository")
Answer = TypeVar("Answer")

_PAUSES = Pauses(first_s=0.25, longest_s=8.0)


class Store:
    """The files below a location, through fsspec. May be used by any number of threads; `stopped` ends what waits.

    Every method raises StoreFailure when the store does not do what it is asked, and Unavailable once `stopped` is set.
    """

    def __init__(self, location: Location, options: CloudOptions, stopped: threading.Event) -> None:
        check_installed(location)
        self._location = location
        self._options = options
        self._stopped = stopped
        self._guard = threading.Lock()
        self._connection: tuple[Any, str] | None = None

    def files(self, folder: str = "") -> list[RemoteFile]:
        """Return all files below the folder of one model, or below the repository, their paths relative to the repository."""

        def ask(file_system: Any, root: str) -> list[RemoteFile]:
            top = f"{root}/{folder}" if folder else root
            file_system.invalidate_cache()
            found = file_system.find(top, withdirs=True, detail=True)
            if not found:
                self._check_top(file_system, root)
            files = remote_files(root, found)
            return [self._sized(file_system, file) for file in files]

        return self._ask("be listed", ask)

    def read(self, file: RemoteFile, start: int, end: int) -> bytes:
        """Return the bytes of a file from `start` up to `end`."""

        def ask(file_system: Any, _root: str) -> bytes:
            data = bytes(file_system.cat_file(file.address, start=start, end=end))
            if len(data) != end - start:
                raise ConnectionError(f"{len(data)} bytes came instead of {end - start}")
            return data

        return self._ask(f"be read ({file.path})", ask)

    def has_ranges(self, file: RemoteFile) -> bool:
        """Say whether the store gives parts of this file: not every web server does."""
        if self._location.protocol not in {"http", "https"}:
            return True
        return self._ask(
            f"be read ({file.path})", lambda file_system, _root: bool(file_system.info(file.address).get("partial"))
        )

    def vouches(self, file: RemoteFile) -> bool:
        """Say whether the checksum of `file` is that of its content: what Amazon encrypts with a key of one's own has another ETag."""
        if self._location.scheme in {"gs", "as"} or file.checksum is None:
            return file.checksum is not None
        if self._location.scheme != "s3":  # its tag may look like an MD5 and be none
            return False

        def ask(file_system: Any, _root: str) -> bool:
            bucket, key, _ = file_system.split_path(file.address)
            head = file_system.call_s3("head_object", Bucket=bucket, Key=key)
            return head.get("ServerSideEncryption", "AES256") == "AES256" and "SSECustomerAlgorithm" not in head

        return self._ask(f"be read ({file.path})", ask)

    def close(self) -> None:
        """Let go of the connections."""
        self._connection = None

    def _ask(self, what: str, call: Callable[[Any, str], Answer]) -> Answer:
        failures, renewed = 0, False
        while not self._stopped.is_set():
            connection = None
            try:
                connection = self._connected()
                return call(*connection)
            except Exception as error:
                kind, reason = _judged(error)
                if kind is Kind.DENIED and not renewed:
                    renewed = True
                    self._renew(connection)
                    continue
                failures += 1
                if kind is not Kind.AWAY or failures >= self._options.attempts:
                    raise self._failure(kind, what, reason) from error
                log.debug("model repository '%s' cannot %s, trying again: %s", self._location.shown, what, reason)
            self._stopped.wait(_PAUSES.spread_after(failures))
        raise Unavailable("Server exiting")

    def _connected(self) -> tuple[Any, str]:
        with self._guard:
            if self._connection is None:
                location = self._location
                credential = credential_for(location.scheme, location.url, os.environ)
                self._connection = connect(location, credential, self._options)
            return self._connection

    def _renew(self, refused: tuple[Any, str] | None) -> None:
        """Read the credentials anew, unless somebody did since `refused` was made."""
        with self._guard:
            if self._connection is refused:
                self._connection = None

    def _failure(self, kind: Kind, what: str, reason: str) -> StoreFailure:
        text = f"model repository '{self._location.shown}' cannot {what}: {kind.value}: {reason}"
        if kind is Kind.DENIED:
            text += "; check its credentials"
        return StoreFailure(kind, text)

    def _check_top(self, file_system: Any, root: str) -> None:
        """Raise FileNotFoundError where not even the bucket is there: an empty answer is no proof that it is."""
        top = root.partition("/")[0] if self._location.scheme in PROTOCOLS else root
        file_system.ls(top, detail=False)

    @staticmethod
    def _sized(file_system: Any, file: RemoteFile) -> RemoteFile:
        """Return the file with what its own description adds: some stores list names alone."""
        if file.size is not None:
            return file
        info = file_system.info(file.address)
        (found,) = remote_files(file.address.removesuffix(file.path), {file.address: info})
        return replace(found, path=file.path, address=file.address)


def _judged(error: Exception) -> tuple[Kind, str]:
    if isinstance(error, Unavailable):  # of our own: the credentials, which may be written anew
        return Kind.DENIED, error.message
    return kind_of(error), without_secrets(text_of(error))
