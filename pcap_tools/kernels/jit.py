"""How kernels are compiled: once a machine, kept on disk, and again whenever any of their sources has changed.

numba's own cache looks only at the file of the function that is called from Python. Kernels here are put together
from several files, so the stamp that is kept with the machine code covers all of them: every file of this folder, and
of the kernel's own if that is another. A kernel takes its pieces (`inlined`, constants) from those two only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core.caching import NullCache

Function = TypeVar("Function", bound=Callable[..., Any])
i64: Any = np.int64  # numba's view of them is not mypy's
u64: Any = np.uint64
type_of: Any = numba.typeof
_njit: Any = numba.njit
# NUMBA_BOUNDSCHECK=1: every access is checked, those of `words` too
CHECKED = bool(getattr(numba.config, "BOUNDSCHECK", False))


def inlined(function: Function) -> Function:
    """A piece of a kernel. A call of its own would hand over each array as seven arguments.

    ``_nrt``: kernels allocate nothing, so nobody has to count who uses an array; counting took most of the time.
    """
    compiled: Function = _njit(forceinline=True, error_model="numpy", _nrt=False)(function)
    return compiled


def kernel(*signature: Any) -> Callable[[Function], Function]:
    """A function that Python calls: compiled for this one signature, without the interpreter's lock."""

    def compile_now(function: Function) -> Function:
        compiled = _njit(nogil=True, error_model="numpy", _nrt=False)(function)
        try:
            compiled.enable_caching()
            compiled._cache._cache_file._source_stamp = _stamp(Path(function.__code__.co_filename).parent)
            _load_at_once(compiled._cache)
        except (RuntimeError, AttributeError):  # nowhere to write, or another numba: compile in each process
            compiled._cache = NullCache()
        compiled.compile(signature)
        compiled.disable_compile()
        done: Function = compiled
        return done

    return compile_now


def _load_at_once(kept: Any) -> None:
    """Machine code that is there needs nothing of numba's types, which numba would learn first: half a second."""

    def load(signature: Any, target: Any) -> Any:
        with kept._guard_against_spurious_io_errors():
            return kept._load_overload(signature, target)

    kept.load_overload = load


@cache
def _stamp(folder: Path) -> str:
    """What the machine code of a kernel in this folder was made from."""
    digest = hashlib.sha256(f"checked {CHECKED}".encode())
    for place in sorted({Path(__file__).parent, folder}):
        for source in sorted(place.glob("*.py")):
            digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()
