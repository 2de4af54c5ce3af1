"""One file of messages from many small batches: addresses become more on the way, and every row keeps its own."""

from pathlib import Path

import pyarrow.parquet as pq

from generators.capture_point import write
from generators.generate import Order, generate
from pcap_tools import load_dialect
from pcap_tools.capture import read_datagrams
from pcap_tools.columnar.decoder import Decoder
from pcap_tools.columnar.reading import read_file
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
