"""What a task of `ingest` does with one unit: decode it, and write its messages to a file that nobody sees yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import uuid4

from pcap_tools.capture.damage import Damage
from pcap_tools.codec.detect import Dialects
from pcap_tools.columnar.decode.schema import ALL_COLUMNS
from pcap_tools.errors import TopicsharkError

from .parquet.messages_file import MessagesFile
from .storage import open_folder
from .units import Unit, open_batches


@dataclass(frozen=True)
class UnitFile:
    """Where a unit is to be written: to `folder`, a path or URI, as `name` and an ending that no other attempt has."""

    unit: Unit
    folder: str
    name: str


@dataclass(frozen=True)
class Written:
    """What became of a unit. `file` is None if it has no message; `error` says why the capture cannot be used."""

    file: str | None = None
    rows: int = 0
    bytes: int = 0
    other: int = 0
    times: tuple[int, int] | None = None
    damage: list[Damage] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    error: str = ""


def write_unit(dialects: Dialects, target: UnitFile) -> Written:
    """Trouble with the capture is a result; any other, such as a full disk, is raised: Spark tries again elsewhere."""
    damage: list[Damage] = []
    warnings: list[str] = []
    name = f"{target.name}-{uuid4().hex}.parquet"
    file = MessagesFile(open_folder(target.folder).new_file(name))
    try:
        with file:
            batches = open_batches(
                target.unit, dialects, ALL_COLUMNS, on_damage=damage.append, on_warning=warnings.append
            )
            for batch in batches:
                file.add(batch)
    except TopicsharkError as error:
        return Written(error=str(error))
    return Written(name if file.rows else None, file.rows, file.bytes, batches.other, file.times, damage, warnings)
