"""A folder, on a disk or in an object store, with the few operations that ingested messages need.

>>> folder = open_folder("s3://bucket/run")          # or a path               # doctest: +SKIP
>>> folder.read("manifest.json"), folder.list("messages")                      # doctest: +SKIP

Names are relative to the folder, with `/` between their parts. `write` and `move` replace what has the name; a file
is there whole or not at all, and on a disk it is safely there when the call returns. URIs are those of `pyarrow.fs`:
`s3://` was tried, `gs://` and `hdfs://` were not. In S3, `move` is a copy on the server (of at most 5 GB) and a
deletion; on a disk it is a rename.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Protocol

from pcap_tools.columnar.read.sources import is_remote
from pcap_tools.errors import TopicsharkError

TEMPORARY = ".writing-"
_CREDENTIALS = re.compile(r"//[^/]*@")


class NewFile(Protocol):
    """A file that is being written. It is made by the first `write`; without one there is none. Raises `OSError`."""

    def write(self, data: bytes | memoryview) -> None: ...

    def finish(self) -> None:
        """It is complete."""

    def discard(self) -> None:
        """It is not, and must not stay."""


class Folder(Protocol):
    """`name` is for people: the absolute path, or the URI without credentials and options.

    All methods raise `TopicsharkError` if the system refuses.
    """

    name: str

    def place(self, file: str) -> str:
        """The absolute path or the URI of a file in it."""

    def read(self, file: str) -> bytes | None:
        """The content; None if there is no such file."""

    def write(self, file: str, data: bytes) -> None: ...

    def new_file(self, file: str) -> NewFile: ...

    def list(self, below: str) -> list[str]:
        """Names of all files below a part of the folder, hidden ones too."""

    def move(self, file: str, to: str) -> None: ...

    def delete(self, file: str) -> None:
        """That there is no such file is not an error."""

    def prune(self, below: str) -> None:
        """Remove this part of the folder, and folders in it, in which no file is left."""

    def removal(self, file: str) -> str:
        """A shell command that does the same."""


def open_folder(where: str | Path) -> Folder:
    """That of a path or a URI, which need not be there."""
    if is_remote(str(where)):
        return RemoteFolder(str(where))
    return LocalFolder(os.path.abspath(os.path.expanduser(str(where).removeprefix("file://"))))


def open_input(place: str) -> Any:
    """A file of pyarrow at a path or a URI, to be read from anywhere, for instance by `pq.ParquetFile`."""
    import pyarrow as pa
    from pyarrow import fs

    try:
        if not is_remote(place):
            return pa.OSFile(place)
        files, path = fs.FileSystem.from_uri(place)
        return files.open_input_file(path)
    except (OSError, ValueError, NotImplementedError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise TopicsharkError(f"{_shown(place)}: cannot be read: {reason}") from error


def _shown(uri: str) -> str:
    """Without credentials and options."""
    return _CREDENTIALS.sub("//", uri.partition("?")[0], count=1) if is_remote(uri) else uri


# --- On a disk ------------------------------------------------------------------------------------------------------


class LocalFolder:
    """As of `Folder`."""

    def __init__(self, path: str) -> None:
        self.name = path

    def place(self, file: str) -> str:
        return os.path.join(self.name, file)

    def read(self, file: str) -> bytes | None:
        with self._refused("read", file):
            try:
                return Path(self.place(file)).read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return None

    def write(self, file: str, data: bytes) -> None:
        place = self.place(file)
        parent, name = os.path.split(place)
        with self._refused("written"):
            os.makedirs(parent, exist_ok=True)
            with NamedTemporaryFile(dir=parent, prefix=f"{TEMPORARY}{name}-", delete=False) as new:
                try:
                    new.write(data)
                    new.flush()
                    os.fchmod(new.fileno(), 0o644)
                    os.fsync(new.fileno())
                    os.replace(new.name, place)
                except BaseException:
                    os.unlink(new.name)
                    raise
            _sync(parent)

    def new_file(self, file: str) -> NewFile:
        return LocalFile(self.place(file))

    def list(self, below: str) -> list[str]:
        found = [Path(at, name) for at, _, names in os.walk(self.place(below)) for name in names]
        return [path.relative_to(self.name).as_posix() for path in found]

    def move(self, file: str, to: str) -> None:
        target = self.place(to)
        with self._refused("written"):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.replace(self.place(file), target)
            _sync(os.path.dirname(target))

    def delete(self, file: str) -> None:
        with self._refused("written"):
            Path(self.place(file)).unlink(missing_ok=True)

    def prune(self, below: str) -> None:
        for at, _, _ in os.walk(self.place(below), topdown=False):
            with suppress(OSError):  # not empty
                os.rmdir(at)

    def removal(self, file: str) -> str:
        return shlex.join(["rm", self.place(file)])

    @contextmanager
    def _refused(self, what: str, file: str = "") -> Iterator[None]:
        try:
            yield
        except OSError as error:
            place = self.place(file) if file else self.name
            raise TopicsharkError(f"{place}: cannot be {what}: {error.strerror or error}") from error


class LocalFile:
    """As of `NewFile`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: FileIO | None = None

    def write(self, data: bytes | memoryview) -> None:
        if self._file is None:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            self._file = FileIO(self._path, "w")
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]

    def finish(self) -> None:
        if self._file is not None:
            os.fsync(self._file.fileno())
            self._file.close()

    def discard(self) -> None:
        if self._file is not None:
            self._file.close()
            os.unlink(self._path)


def _sync(folder: str) -> None:
    """Have the names of its files on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- In a store -----------------------------------------------------------------------------------------------------


class RemoteFolder:
    """As of `Folder`. Objects appear whole when they are closed."""

    def __init__(self, uri: str) -> None:
        from pyarrow import fs  # only who uses a store waits for it

        base, question, options = uri.partition("?")
        self._uri, self._options = base.rstrip("/"), question + options
        self.name = _shown(self._uri)
        with self._refused("opened"):
            self._files, self._root = fs.FileSystem.from_uri(self._uri + self._options)

    def place(self, file: str) -> str:
        return f"{self._uri}/{file}{self._options}"

    def read(self, file: str) -> bytes | None:
        with self._refused("read", file):
            if not self._is_file(file):
                return None
            with self._files.open_input_stream(self._path(file)) as stream:
                return bytes(stream.read())

    def write(self, file: str, data: bytes) -> None:
        with self._refused("written", file), self._files.open_output_stream(self._path(file)) as stream:
            stream.write(data)

    def new_file(self, file: str) -> NewFile:
        return _NewObject(self, file)

    def list(self, below: str) -> list[str]:
        from pyarrow import fs

        wanted = fs.FileSelector(self._path(below), recursive=True, allow_not_found=True)
        with self._refused("listed"):
            found = self._files.get_file_info(wanted)
        return [one.path[len(self._root) + 1 :] for one in found if one.type == fs.FileType.File]

    def move(self, file: str, to: str) -> None:
        with self._refused("written", to):
            self._files.move(self._path(file), self._path(to))

    def delete(self, file: str) -> None:
        with self._refused("written", file):
            if self._is_file(file):
                self._files.delete_file(self._path(file))

    def prune(self, below: str) -> None:
        """There are no folders, but pyarrow keeps an object as a sign of one that was emptied."""
        with self._refused("written", below), suppress(FileNotFoundError):
            if not self.list(below):
                self._files.delete_dir(self._path(below))

    def removal(self, file: str) -> str:
        place = f"{self.name}/{file}"
        known = {"s3": ["aws", "s3", "rm"], "gs": ["gsutil", "rm"], "hdfs": ["hdfs", "dfs", "-rm"]}
        return shlex.join([*known.get(place.partition("://")[0], ["delete"]), place])

    def open_output(self, file: str) -> Any:
        """A stream of pyarrow; raises `OSError`."""
        return self._files.open_output_stream(self._path(file))

    def _path(self, file: str) -> str:
        return f"{self._root}/{file}"

    def _is_file(self, file: str) -> bool:
        from pyarrow import fs

        return bool(self._files.get_file_info(self._path(file)).type == fs.FileType.File)

    @contextmanager
    def _refused(self, what: str, file: str = "") -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError, NotImplementedError) as error:
            reason = str(error).partition("\n")[0]
            place = f"{self.name}/{file}" if file else self.name
            raise TopicsharkError(f"{place}: cannot be {what}: {reason}") from error


class _NewObject:
    """As of `NewFile`."""

    def __init__(self, folder: RemoteFolder, file: str) -> None:
        self._folder, self._file = folder, file
        self._stream: Any = None

    def write(self, data: bytes | memoryview) -> None:
        if self._stream is None:
            self._stream = self._folder.open_output(self._file)
        self._stream.write(data)

    def finish(self) -> None:
        if self._stream is not None:
            self._stream.close()

    def discard(self) -> None:
        """A stream of pyarrow cannot be given up: what was written becomes an object, which goes then."""
        if self._stream is not None:
            with suppress(OSError):
                self._stream.close()
            self._folder.delete(self._file)
