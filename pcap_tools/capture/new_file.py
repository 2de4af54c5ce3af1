"""A file that appears under its name when it is whole, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from pcap_tools.capture.damage import CaptureError


@contextmanager
def new_file(target: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Written beside `target` and renamed at the end; an error leaves what was there before.

    A link is followed, so that it stays a link. Not `tempfile`: its files are the user's alone, this one is made for
    others to read as any new file is.
    """
    path = os.path.realpath(os.fspath(target))
    folder, name = os.path.split(path)
    hidden = os.path.join(folder, f".{name[:200]}.{os.getpid()}.part")
    try:
        with open(hidden, "wb") as stream:
            yield stream
        os.replace(hidden, path)
    except OSError as error:
        raise CaptureError(f"{os.fspath(target)}: cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            os.unlink(hidden)
