"""One file of messages from many small batches: addresses become more on the way, and every row keeps its own."""

from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from generators.capture.capture_point import write
from generators.generate import GeneratorOptions, generate
from pcap_tools import load_dialect
from pcap_tools.capture import read_datagrams
from pcap_tools.columnar.decode.decoder import Decoder
from pcap_tools.columnar.decode.schema import ALL_COLUMNS, ALL_MESSAGES, MESSAGES, SCHEMA_VERSION
from pcap_tools.columnar.read.reading import read_file
from spark_analysis.parquet import messages_file
from spark_analysis.parquet.messages_file import SCHEMA_KEY, MessagesFile
from spark_analysis.storage.folder import LocalFile


def test_rows_keep_their_addresses_while_the_addresses_become_more(tmp_path: Path) -> None:
    capture, target = tmp_path / "run.pcap", tmp_path / "out.parquet"
    write(generate(GeneratorOptions("building", sensors=40, rounds=5)).capture, capture)
    decoder = Decoder([load_dialect("colon")], capture="run")
    counts = []
    with MessagesFile(LocalFile(str(target))) as file:
        for batch in read_file(capture, rows=32):
            file.add(decoder.decode(batch))
            counts.append(len(batch.addresses))
    assert counts[0] < counts[len(counts) // 8] < counts[-1]
    wanted = [(one.frame, one.src, one.dst) for one in read_datagrams(capture)]
    assert len(wanted) > 4 * counts[-1]  # so that the dictionaries are joined, not made anew
    table = pq.read_table(target, columns=["frame", "src", "dst"])
    assert list(zip(*(table[name].to_pylist() for name in ("frame", "src", "dst")), strict=True)) == wanted
    assert file.rows == len(wanted)


@pytest.mark.parametrize("name", ["topic", "filter", "src"])
@pytest.mark.parametrize("rest", ["", "/" + "long" * 100], ids=["short", "too long for the footer"])
def test_a_filter_on_a_text_reads_only_the_row_groups_that_can_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rest: str, name: str
) -> None:
    monkeypatch.setattr(messages_file, "GROUP_ROWS", 100)
    target = tmp_path / "out.parquet"
    floors = ["attic", "cellar", "hall", "roof"]
    with MessagesFile(LocalFile(str(target))) as file:
        for floor in floors:
            texts = [f"{floor}/room{number % 7}{rest}" for number in range(100)]
            file.add(pa.record_batch([list(range(100)), texts], ["frame", name]))
    about = pq.ParquetFile(target).metadata
    limits = [about.row_group(group).column(1).statistics for group in range(about.num_row_groups)]
    assert [one.has_min_max for one in limits] == [True] * len(floors)
    (fragment,) = ds.dataset(target).get_fragments()
    assert len(fragment.split_by_row_group()) == len(floors)
    for place, floor in enumerate(floors):
        assert limits[place].min <= f"{floor}/room0{rest}" < f"{floor}/room6{rest}" <= limits[place].max
        wanted = ds.field(name) == f"{floor}/room3{rest}"
        (left,) = fragment.split_by_row_group(wanted)
        assert [group.id for group in left.row_groups] == [place]
        assert fragment.to_table(filter=wanted)["frame"].to_pylist() == list(range(3, 100, 7))
    assert fragment.split_by_row_group(ds.field(name) == f"garden/room1{rest}") == []


def test_the_version_of_the_columns_is_in_the_file(tmp_path: Path) -> None:
    with MessagesFile(LocalFile(str(tmp_path / "x.parquet"))) as file:
        file.add(pa.record_batch([[1]], ["frame"]))
    assert pq.read_schema(tmp_path / "x.parquet").metadata == {SCHEMA_KEY: str(SCHEMA_VERSION).encode()}


def test_columns_that_changed_have_another_version() -> None:
    """If this fails, the columns have changed: raise SCHEMA_VERSION, then set both here."""
    columns = "".join(f"{field.name}:{field.type} " for field in ALL_MESSAGES)
    assert (SCHEMA_VERSION, sha256(columns.encode()).hexdigest()[:16]) == (2, "44543038fba94c9a")


def test_files_from_before_there_were_keys_are_read_beside_new_ones(tmp_path: Path) -> None:
    capture, folder = tmp_path / "run.pcap", tmp_path / "messages"
    folder.mkdir()
    write(generate(GeneratorOptions("building", dialects=("mqttsn",), sensors=3, rounds=2)).capture, capture)
    for name, columns in (("new", ALL_COLUMNS), ("old", None)):
        decoder = Decoder([load_dialect("mqttsn")], columns=columns, capture=name)
        with MessagesFile(LocalFile(str(folder / f"{name}.parquet"))) as file:
            for batch in read_file(capture):
                file.add(decoder.decode(batch))
    assert pq.read_schema(folder / "new.parquet").equals(ALL_MESSAGES)
    assert pq.read_schema(folder / "old.parquet").equals(MESSAGES)
    both = ds.dataset(folder, schema=ALL_MESSAGES).to_table()
    old, new = (both.filter(ds.field("capture") == name) for name in ("old", "new"))
    assert old.select(MESSAGES.names[1:]).equals(new.select(MESSAGES.names[1:]))
    assert old.num_rows > 20
    for name in ("key", "number", "ip_id", "code", "accepted", "qos", "dup"):
        assert old[name].null_count == old.num_rows
        assert new[name].null_count < new.num_rows
