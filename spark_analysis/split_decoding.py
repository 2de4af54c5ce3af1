"""What a task does with one split of a capture: decode it, and write its messages to a file that nobody sees yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import uuid4

from pcap_tools.capture.damage import Damage
from pcap_tools.columnar.decoder import Decoder
from pcap_tools.columnar.reading import read_batches
from pcap_tools.columnar.schema import ALL_COLUMNS
from pcap_tools.columnar.state import Split
from pcap_tools.detect import Routes
from pcap_tools.errors import TopicsharkError
from pcap_tools.escaping import escape_text

from .capture_parts import Dialects
from .parquet.messages_file import MessagesFile
from .storage import open_folder


@dataclass(frozen=True)
class SplitJob:
    """The file goes to `folder`, a path or URI; its name is `name` and an ending that no other attempt has."""

    split: Split
    routes: Routes
    folder: str
    name: str


@dataclass(frozen=True)
class SplitDone:
    """What became of a split. `file` is None if it has no message; `error` says why the capture cannot be used."""

    file: str | None = None
    rows: int = 0
    bytes: int = 0
    other: int = 0
    times: tuple[int, int] | None = None
    damage: list[Damage] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    error: str = ""


def decode_split(dialects: Dialects, job: SplitJob) -> SplitDone:
    """Trouble with the capture is a result; any other, such as a full disk, is raised: Spark tries again elsewhere."""
    damage: list[Damage] = []
    warnings: list[str] = []
    decoder = Decoder(dialects.spoken(job.routes), job.routes, ALL_COLUMNS, capture=escape_text(job.split.source))
    name = f"{job.name}-{uuid4().hex}.parquet"
    file = MessagesFile(open_folder(job.folder).new_file(name))
    try:
        with file:
            for batch in read_batches(job.split, on_damage=damage.append, on_warning=warnings.append):
                file.add(decoder.decode(batch))
    except TopicsharkError as error:
        return SplitDone(error=str(error))
    return SplitDone(name if file.rows else None, file.rows, file.bytes, decoder.other, file.times, damage, warnings)
