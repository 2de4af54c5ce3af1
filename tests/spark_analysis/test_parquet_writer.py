"""One file of messages from many small batches: addresses become more on the way, and every row keeps its own."""

from pathlib import Path

import pyarrow.dataset as ds
import pyarrow.parquet as pq

from generators.capture_point import write
from generators.generate import Order, generate
from pcap_tools import load_dialect
from pcap_tools.capture import read_datagrams
from pcap_tools.columnar.decoder import Decoder
from pcap_tools.columnar.reading import read_file
from pcap_tools.columnar.schema import ALL_COLUMNS, ALL_MESSAGES, MESSAGES
from spark_analysis.parquet_writer import MessagesFile


def test_rows_keep_their_addresses_while_the_addresses_become_more(tmp_path: Path) -> None:
    capture, target = tmp_path / "run.pcap", tmp_path / "out.parquet"
    write(generate(Order("building", sensors=40, rounds=5)).capture, capture)
    decoder = Decoder([load_dialect("colon")], capture="run")
    counts = []
    with MessagesFile(str(target)) as file:
        for batch in read_file(capture, rows=32):
            file.add(decoder.decode(batch))
            counts.append(len(batch.addresses))
    assert counts[0] < counts[len(counts) // 8] < counts[-1]
    wanted = [(one.frame, one.src, one.dst) for one in read_datagrams(capture)]
    assert len(wanted) > 4 * counts[-1]  # so that the dictionaries are joined, not made anew
    table = pq.read_table(target, columns=["frame", "src", "dst"])
    assert list(zip(*(table[name].to_pylist() for name in ("frame", "src", "dst")), strict=True)) == wanted
    assert file.rows == len(wanted)


def test_files_from_before_there_were_keys_are_read_beside_new_ones(tmp_path: Path) -> None:
    capture, folder = tmp_path / "run.pcap", tmp_path / "messages"
    folder.mkdir()
    write(generate(Order("building", dialects=("mqttsn",), sensors=3, rounds=2)).capture, capture)
    for name, columns in (("new", ALL_COLUMNS), ("old", None)):
        decoder = Decoder([load_dialect("mqttsn")], columns=columns, capture=name)
        with MessagesFile(str(folder / f"{name}.parquet")) as file:
            for batch in read_file(capture):
                file.add(decoder.decode(batch))
    assert pq.read_schema(folder / "new.parquet").equals(ALL_MESSAGES)
    assert pq.read_schema(folder / "old.parquet").equals(MESSAGES)
    both = ds.dataset(folder, schema=ALL_MESSAGES).to_table()
    old, new = (both.filter(ds.field("capture") == name) for name in ("old", "new"))
    assert old.select(MESSAGES.names[1:]).equals(new.select(MESSAGES.names[1:]))
    assert old.num_rows > 20
    for name in ("key", "number", "ip_id"):
        assert old[name].null_count == old.num_rows
        assert new[name].null_count < new.num_rows
