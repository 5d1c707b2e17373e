"""The output folder: which shards are done, who works on which, and what the job is.

A shard is done when its part exists. A part appears complete, and only once: it is linked, or put
on condition that it is new. So a process may end at any moment, and any number of processes may
work on one job. Below `_tritonpy_batch` are the job, the plan, one record per part, and leases.
"""

from __future__ import annotations

import hashlib
import os
import socket
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import fsspec.core
import msgspec
import psutil

from tritonpy_batch.options import InvalidJob, JobFailed

FOLDER = "_tritonpy_batch"
SCRATCH = "scratch"
_RETRIES = 5
_FIRST_DELAY_S = 0.2
Result = TypeVar("Result")


class PartRecord(msgspec.Struct, frozen=True):
    """What is known about a part: rows, rows with an error, input and output size, SHA-256."""

    shard: int
    rows: int
    errors: int
    nbytes: int
    size: int
    sha256: str


class Lease(msgspec.Struct, frozen=True):
    """Who works on a shard until `expires`, in seconds since 1970."""

    owner: str
    host: str
    pid: int
    started: float
    expires: float


class Store:
    """A folder at a local path or a URL, with writes that fail if the file exists."""

    def __init__(self, url: str) -> None:
        try:
            filesystem, path = fsspec.core.url_to_fs(url)
        except (ValueError, ImportError, OSError) as error:
            raise InvalidJob(f"--output {url}: {error}") from error
        self._fs: Any = filesystem
        self._root = str(path).rstrip("/")
        self.local = Path(self._root) if "file" in _protocols(filesystem) else None

    def path(self, name: str) -> str:
        """Return the path of a file as the store knows it."""
        return f"{self._root}/{name}"

    def names(self, folder: str = "") -> set[str]:
        """Return the names of the files in a folder."""
        path = f"{self._root}/{folder}".rstrip("/")
        self._fs.invalidate_cache()
        try:
            found = self._retried(lambda: self._fs.ls(path, detail=False))
        except FileNotFoundError:
            return set()
        return {str(each).rstrip("/").rpartition("/")[2] for each in found}

    def exists(self, name: str) -> bool:
        """Return whether a file exists."""
        self._fs.invalidate_cache()
        return bool(self._retried(lambda: self._fs.exists(self.path(name))))

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, None if there is none."""
        try:
            return bytes(self._retried(lambda: self._fs.cat_file(self.path(name))))
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Write or replace a file at once."""
        if self.local is None:
            self._retried(lambda: self._fs.pipe_file(self.path(name), content))
            return
        temporary = self._temporary(content)
        os.replace(temporary, self._local_file(name))

    def create(self, name: str, content: bytes) -> bool:
        """Write a file and return True; return False if it exists."""
        if self.local is not None:
            return self._link(self._temporary(content), name)
        return self._create(
            lambda: self._fs.pipe_file(self.path(name), content, mode="create"), name
        )

    def publish(self, file: Path, name: str) -> bool:
        """Move a finished local file here and return True; return False if `name` exists."""
        if self.local is not None:
            return self._link(file, name)
        done = self._create(
            lambda: self._fs.put_file(str(file), self.path(name), mode="create"), name
        )
        file.unlink(missing_ok=True)
        return done

    def remove(self, name: str) -> None:
        """Delete a file or folder, if it exists."""
        with suppress(FileNotFoundError):
            self._fs.rm(self.path(name), recursive=True)

    def scratch(self) -> Path:
        """Return a new local file, on the same file system as the parts if they are local."""
        folder = Path(tempfile.gettempdir())
        if self.local is not None:
            folder = self.local / FOLDER / SCRATCH
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{socket.gethostname()}.{os.getpid()}.{uuid.uuid4().hex}"

    def remove_scratch(self) -> None:
        """Delete scratch files that ended processes of this machine left."""
        if self.local is None:
            return
        for file in (self.local / FOLDER / SCRATCH).glob(f"{socket.gethostname()}.*"):
            pid = file.name[len(socket.gethostname()) + 1 :].partition(".")[0]
            if pid.isdigit() and not psutil.pid_exists(int(pid)):
                file.unlink(missing_ok=True)

    def _local_file(self, name: str) -> Path:
        file = Path(self._root, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        return file

    def _temporary(self, content: bytes) -> Path:
        file = self.scratch()
        file.write_bytes(content)
        return file

    def _link(self, file: Path, name: str) -> bool:
        with file.open("rb") as handle:
            os.fsync(handle.fileno())
        target = self._local_file(name)
        try:
            os.link(file, target)
        except FileExistsError:
            return False
        except OSError:  # a file system without hard links
            if target.exists():
                return False
            os.replace(file, target)
            return True
        finally:
            file.unlink(missing_ok=True)
        _sync_folder(target.parent)
        return True

    def _create(self, write: Callable[[], Any], name: str) -> bool:
        try:
            self._retried(write)
        except FileExistsError:
            return False
        except (TypeError, NotImplementedError, ValueError) as error:
            raise InvalidJob(
                f"{self.path(name)}: this store has no writes that fail if a file exists: {error}"
            ) from error
        return True

    def _retried(self, call: Callable[[], Result]) -> Result:
        """Call again after faults of the store. An object that a lost answer hid exists then."""
        delay = _FIRST_DELAY_S
        for attempt in range(_RETRIES + 1):
            try:
                return call()
            except (FileExistsError, FileNotFoundError, PermissionError, IsADirectoryError):
                raise
            except OSError as error:
                if _is_precondition(error):
                    raise FileExistsError(str(error)) from error
                if self.local is not None or attempt == _RETRIES:
                    raise JobFailed(f"{self._root}: {type(error).__name__}: {error}") from error
                time.sleep(delay)
                delay *= 2
        raise AssertionError("the last attempt returns or raises")


class JobFolder:
    """The state of a job in its output folder. `suffix` is that of parts."""

    def __init__(self, store: Store, suffix: str, lease_s: float) -> None:
        self._store = store
        self._suffix = suffix
        self._lease_s = lease_s
        self._started = psutil.Process().create_time()
        self._owner = uuid.uuid4().hex
        self._held: set[int] = set()

    def part_name(self, shard: int) -> str:
        """Return the file name of a part."""
        return f"part-{shard:05d}.{self._suffix}"

    def load_document(self, name: str) -> bytes | None:
        """Return the content of a document of the job, None if there is none."""
        return self._store.read(f"{FOLDER}/{name}")

    def create_document(self, name: str, content: bytes) -> bool:
        """Store a document of the job; return False if another process did."""
        return self._store.create(f"{FOLDER}/{name}", content)

    def write_document(self, name: str, content: bytes) -> None:
        """Store or replace a document of the job."""
        self._store.write(f"{FOLDER}/{name}", content)

    def discard(self) -> None:
        """Delete every part and everything that is known of the job."""
        for name in self._store.names():
            if name.startswith("part-") or name == FOLDER:
                self._store.remove(name)

    def is_done(self, shard: int) -> bool:
        """Return whether the part of a shard exists."""
        return self._store.exists(self.part_name(shard))

    def done(self) -> set[int]:
        """Return the shards whose parts exist."""
        ending = f".{self._suffix}"
        return {
            int(name[len("part-") : -len(ending)])
            for name in self._store.names()
            if name.startswith("part-") and name.endswith(ending)
        }

    def records(self) -> dict[int, PartRecord]:
        """Return the records of the parts that exist."""
        done = self.done()
        records = {}
        for name in self._store.names(f"{FOLDER}/parts"):
            content = self._store.read(f"{FOLDER}/parts/{name}")
            if content is not None:
                record = msgspec.json.decode(content, type=PartRecord)
                if record.shard in done:
                    records[record.shard] = record
        return records

    def scratch(self) -> Path:
        """Return a new local file for a part."""
        return self._store.scratch()

    def commit(self, record: PartRecord, file: Path) -> bool:
        """Publish a finished part; return False if another process published it first."""
        content = msgspec.json.encode(record)
        self._store.write(f"{FOLDER}/parts/{record.shard:05d}.json", content)
        published = self._store.publish(file, self.part_name(record.shard))
        self.release(record.shard)
        return published

    def claim(self, shard: int) -> bool:
        """Lease a shard; return False if another process holds it."""
        name = f"{FOLDER}/leases/{shard:05d}.json"
        content = msgspec.json.encode(self._lease())
        if not self._store.create(name, content):
            found = self._store.read(name)
            if found is not None and self._is_held(msgspec.json.decode(found, type=Lease)):
                return False
            # two processes may take over at once: then the first part that is published wins
            self._store.write(name, content)
        self._held.add(shard)
        return True

    def renew(self) -> None:
        """Extend the leases of this process; call it at a third of their time."""
        content = msgspec.json.encode(self._lease())
        for shard in tuple(self._held):
            self._store.write(f"{FOLDER}/leases/{shard:05d}.json", content)
            if shard not in self._held:
                self._store.remove(f"{FOLDER}/leases/{shard:05d}.json")

    def release(self, shard: int) -> None:
        """End the lease of a shard."""
        self._held.discard(shard)
        self._store.remove(f"{FOLDER}/leases/{shard:05d}.json")

    def release_all(self) -> None:
        """End every lease of this process."""
        for shard in tuple(self._held):
            self.release(shard)

    def _lease(self) -> Lease:
        expires = time.time() + self._lease_s
        return Lease(self._owner, socket.gethostname(), os.getpid(), self._started, expires)

    def _is_held(self, lease: Lease) -> bool:
        if lease.owner == self._owner or lease.expires < time.time():
            return False
        if lease.host != socket.gethostname():
            return True
        try:
            return abs(psutil.Process(lease.pid).create_time() - lease.started) < 1
        except psutil.Error:
            return False


def sha256_of(file: Path) -> str:
    """Return the digest of a file's content."""
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _protocols(filesystem: Any) -> tuple[str, ...]:
    protocol = filesystem.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)


def _is_precondition(error: OSError) -> bool:
    """Return whether a store refused a write because the object exists."""
    text = str(error)
    return any(
        each in text for each in ("PreconditionFailed", "412", "pre-conditions", "ConditionNotMet")
    )
