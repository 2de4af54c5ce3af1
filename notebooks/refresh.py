"""Runs the notebooks and keeps what they show, so that a code host shows them with their pictures.

    python notebooks/refresh.py                     # all of them
    python notebooks/refresh.py ack_timing          # one

Nothing of the machine is kept: no times of execution, no versions. What is generated comes from seeds, so running this
again changes nothing but what the code has changed. Tests run the notebooks by the same `run`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from traitlets import default

FOLDER = Path(__file__).resolve().parent
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
TIMEOUT_S = 1800  # of one cell; pytest has its own
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


class ThisPython(KernelSpecManager):
    """Whatever kernels a user has installed: the notebooks run in the Python that this is."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=command, display_name="Python 3", language="python")


class Kernel(AsyncKernelManager):
    """Made by the client and not handed to it, so that the client ends it, and with it its Spark."""

    @default("kernel_spec_manager")
    def _this_python(self) -> KernelSpecManager:
        return ThisPython(parent=self)


def run(name: str, folder: Path, settings: dict[str, str] | None = None, last: str = "") -> Any:
    """The executed notebook; a cell that fails raises `nbclient.exceptions.CellExecutionError`.

    It runs in ``folder`` and leaves its files there; ``settings`` go into its environment; ``last`` is code that is
    run behind its last cell.
    """
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    if last:
        notebook.cells.append(nbformat.v4.new_code_cell(last))  # type: ignore[no-untyped-call]
    where = {"metadata": {"path": str(folder)}}
    client = NotebookClient(
        notebook, kernel_manager_class=Kernel, timeout=TIMEOUT_S, resources=where, record_timing=False
    )
    path = os.pathsep.join(filter(None, (str(FOLDER.parent), os.environ.get("PYTHONPATH"))))
    return client.execute(env={**os.environ, **(settings or {}), "PYTHONPATH": path, "TMPDIR": str(folder)})


def cleaned(notebook: Any) -> Any:
    """Without what differs from run to run, and without what is said twice: plain text beside a table or a picture."""
    notebook.metadata = METADATA
    for cell in notebook.cells:
        cell.metadata = {}
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if len(data) > 1:
                data.pop("text/plain", None)
    return notebook


def main(names: list[str]) -> None:
    for name in names or NAMES:
        if name not in NAMES:
            raise SystemExit(f"there is no notebook {name!r}; there are: {', '.join(NAMES)}")
        with TemporaryDirectory(prefix="topicshark-notebook-") as folder:
            notebook = cleaned(run(name, Path(folder)))
        nbformat.write(notebook, FOLDER / f"{name}.ipynb")  # type: ignore[no-untyped-call]
        print(f"{name}.ipynb: {(FOLDER / f'{name}.ipynb').stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
