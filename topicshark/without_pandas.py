"""Keeps pyarrow from importing pandas, half a second that a command on a small capture would notice.

pyarrow imports it to see whether what it is given is a Series. Nothing that a command hands over is, so it is told once
that there is no pandas. Whoever asks for one all the same (``to_pandas``) still gets it.
"""

import sys
from typing import Any


class _NoPandas:
    """An import finder that says no."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name == "pandas":
            raise ImportError("not needed")


def spare_pandas() -> None:
    """To be called before pyarrow is first used; without effect where pandas is there already."""
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    finder: Any = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.scalar(0)  # the first value makes pyarrow look
    finally:
        sys.meta_path.remove(finder)
