"""What a user calls SOURCE, as a sorted list of captures: files, folders, globs and URIs.

>>> find_captures(["captures/", "more/*.pcap", "s3://bucket/day/"])  # doctest: +SKIP
['/home/me/captures/a.pcap', '/home/me/more/b.pcap', 's3://bucket/day/c.pcapng.gz']

Paths come back absolute: a worker of a cluster runs in a folder of its own. A folder gives the captures in it, known
by their names; what lies deeper is for a glob (`captures/**/*.pcap`). A file that is named is taken whatever its name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import translate
from glob import glob, has_magic
from posixpath import basename
from typing import Any

from pcap_tools.columnar.read.sources import is_remote
from pcap_tools.errors import TopicsharkError, UsageError

# tcpdump -C puts a number behind the name.
_NAME = re.compile(r"[^.].*\.(pcapng|pcap|cap)\d*(\.gz|\.zst|\.lz4)?", re.IGNORECASE | re.DOTALL)
_INDEX = ".topicshark-index"
_EXPECTED = "expected names like *.pcap, *.pcapng or *.cap, also with .gz, .zst or .lz4"


def is_capture_name(name: str) -> bool:
    """Whether a file in a folder is taken for a capture."""
    return _NAME.fullmatch(name) is not None


def find_captures(sources: Sequence[str]) -> list[str]:
    """All captures that the sources name, each once. A source that gives none is a `TopicsharkError`."""
    if not sources:
        raise UsageError("no source given")
    return sorted({capture for source in sources for capture in _captures(source)})


def _captures(source: str) -> list[str]:
    if source == "-":
        raise UsageError("captures are read in parts, which stdin cannot be: name a file")
    found = list(_remote(source) if is_remote(source) else _local(source.removeprefix("file://")))
    if not found:
        raise TopicsharkError(f"{source}: no captures there; {_EXPECTED}")
    return found


def _local(path: str) -> Iterator[str]:
    full = os.path.abspath(os.path.expanduser(path))
    if os.path.isdir(full):
        yield from (os.path.join(full, name) for name in _listed(full) if is_capture_name(name))
    elif os.path.lexists(full):
        yield full
    elif has_magic(path):
        yield from (name for name in glob(full, recursive=True) if os.path.isfile(name) and not name.endswith(_INDEX))
    else:
        raise TopicsharkError(f"{path}: there is no such file or folder")


def _listed(folder: str) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(folder) if entry.is_file()]
    except OSError as error:
        raise TopicsharkError(f"{folder}: cannot be listed: {error.strerror}") from error


def _remote(uri: str) -> Iterator[str]:
    """Of a URI, what stands behind `?` are options of the store, so `?` is no wildcard there."""
    from pyarrow import fs  # only who reads from a store waits for it

    place, question, options = uri.partition("?")
    scheme, _, rest = place.partition("://")
    fixed = re.split(r"[*\[]", place, maxsplit=1)[0].rpartition("/")[0] if has_magic(place) else place
    try:
        filesystem, root = fs.FileSystem.from_uri(fixed + question + options)
        infos = _infos(filesystem, root, deep="**" in place)
    except (OSError, ValueError, NotImplementedError) as error:
        raise TopicsharkError(f"{uri}: cannot be listed: {error}") from error
    wanted = _matcher(rest) if has_magic(place) else None
    before = fixed.removesuffix("/").removesuffix(root.removesuffix("/"))  # scheme, and the host where there is one
    for info in infos:
        if wanted(_without_host(before, scheme) + info.path) if wanted else _is_wanted(info, root):
            yield before + info.path + question + options


def _infos(filesystem: Any, root: str, deep: bool) -> list[Any]:
    from pyarrow import fs

    info = filesystem.get_file_info(root)
    if info.type == fs.FileType.File:
        return [info]
    found = filesystem.get_file_info(fs.FileSelector(root, recursive=deep, allow_not_found=True))
    return [one for one in found if one.type == fs.FileType.File]


def _is_wanted(info: Any, root: str) -> bool:
    return info.path == root or _NAME.fullmatch(basename(info.path)) is not None


def _without_host(before: str, scheme: str) -> str:
    return before.removeprefix(f"{scheme}://")


def _matcher(pattern: str) -> Any:
    """Names by a glob in which `*` stays within a folder and `**` does not."""
    parts = [".*" if part == "**" else translate(part)[4:-3].replace(".*", "[^/]*") for part in pattern.split("/")]
    wanted = re.compile("/".join(parts).replace("/.*/", "/(?:.*/)?"), re.DOTALL)
    return lambda name: wanted.fullmatch(name) is not None and not name.endswith(_INDEX)
