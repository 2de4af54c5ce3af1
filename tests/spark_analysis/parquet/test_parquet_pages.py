"""What the Parquet writer writes, pyarrow reads: it judges every encoding at its edges."""

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_analysis.parquet import encoders, messages_file, metadata
from spark_analysis.parquet.messages_file import MessagesFile
from spark_analysis.storage.folder import LocalFile

WIDE, NARROW = (1 << 63) - 1, (1 << 31) - 1
NUMBERS = [
    [0],
    [7] * 300,
    list(range(1000)),
    [-1, 5, -3, 0] * 70,
    [NARROW, -NARROW - 1, NARROW, 0, -1] * 40,
    [value * value * 7919 % 65536 for value in range(129)],
    [None, 3, None, 3, 4, None] * 50,
    [None] * 9,
]
LARGE = [[WIDE, -WIDE - 1, 0, WIDE, -1] * 30, [(1 << shift) * sign for shift in range(63) for sign in (1, -1)] * 3]
TEXTS = [
    ["a"],
    ["", "a", "ab" * 40, "", "ünï", "12345678", "123456789"] * 30,
    [None, "x", None, "", "x" * 7, "x" * 8] * 30,
    [None] * 20,
    [f"topic/{value}" for value in range(500)],
]
FLAGS = [[True], [True, False, None] * 20, [None] * 3, [True] * 17]


def written(path: Path, *columns: pa.ChunkedArray, names: str = "frame") -> pa.Table:
    """Each chunk is a batch, and so a page."""
    table = pa.table(dict(zip(names.split(), columns, strict=True)))
    with MessagesFile(LocalFile(str(path))) as file:
        for batch in table.to_batches():
            file.add(batch)
    assert file.rows == table.num_rows
    assert file.bytes == path.stat().st_size
    return pq.read_table(path)


def pages(values: list[Any], kind: pa.DataType) -> pa.ChunkedArray:
    """As one page, in pages of which the second begins inside a byte of bits, and once more from the middle."""
    whole = pa.array(values, kind)
    return pa.chunked_array([whole, whole[: len(values) // 3], whole[len(values) // 3 :], whole[len(values) // 2 :]])


@pytest.mark.parametrize("name", ["frame", "length"], ids=["differences", "codes"])
@pytest.mark.parametrize("kind", [pa.int32(), pa.int64()], ids=str)
@pytest.mark.parametrize("values", NUMBERS)
def test_numbers(tmp_path: Path, values: list[int | None], kind: pa.DataType, name: str) -> None:
    column = pages(values, kind)
    assert written(tmp_path / "x.parquet", column, names=name)[name].to_pylist() == column.to_pylist()


@pytest.mark.parametrize("name", ["time_ns", "key"], ids=["differences", "codes"])
@pytest.mark.parametrize("values", LARGE, ids=["extremes", "powers"])
def test_numbers_of_64_bits(tmp_path: Path, values: list[int], name: str) -> None:
    column = pages(values, pa.int64())
    assert written(tmp_path / "x.parquet", column, names=name)[name].to_pylist() == column.to_pylist()


@pytest.mark.parametrize("name", ["payload", "topic"], ids=["lengths", "codes"])
@pytest.mark.parametrize("values", TEXTS)
def test_texts(tmp_path: Path, values: list[str | None], name: str) -> None:
    column = pages(values, pa.string())
    assert written(tmp_path / "x.parquet", column, names=name)[name].to_pylist() == column.to_pylist()


@pytest.mark.parametrize("values", FLAGS)
def test_flags(tmp_path: Path, values: list[bool | None]) -> None:
    column = pages(values, pa.bool_())
    assert written(tmp_path / "x.parquet", column, names="retain")["retain"].to_pylist() == column.to_pylist()


@pytest.mark.parametrize("most", [1, 100])
def test_codes_that_are_there_already(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(encoders, "_MOST_NAMES", most)
    codes = [pa.array([0, 0], pa.int16()), pa.array([0, None, 2, 1, 1], pa.int16()), pa.array([3] * 9, pa.int16())]
    names = [["a"], ["a", "b", "çç"], ["a", "b", "çç", ""]]
    parts = [pa.DictionaryArray.from_arrays(code, pa.array(name)) for code, name in zip(codes, names, strict=True)]
    with MessagesFile(LocalFile(str(tmp_path / "x.parquet"))) as file:
        for part in parts:
            file.add(pa.record_batch([part], ["src"]))
    wanted = ["a", "a", "a", None, "çç", "b", "b", *[""] * 9]
    assert pq.read_table(tmp_path / "x.parquet")["src"].to_pylist() == wanted


def test_too_many_values_for_a_dictionary(tmp_path: Path) -> None:
    """Pages with codes stay, the next ones have none."""
    many = encoders.MOST_VALUES
    numbers = pa.chunked_array([[1, 2, 1], list(range(many, 3 * many)), [2, 2]])
    texts = pa.chunked_array([["a", "b", "a"], [str(number) for number in range(2 * many)], ["b", "b"]])
    got = written(tmp_path / "x.parquet", numbers, texts, names="key topic")
    assert got["key"].to_pylist() == numbers.to_pylist()
    assert got["topic"].to_pylist() == texts.to_pylist()
    used = pq.ParquetFile(tmp_path / "x.parquet").metadata.row_group(0).column(0).encodings
    assert {"RLE_DICTIONARY", "DELTA_BINARY_PACKED"} <= set(used)


def test_row_groups_begin_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages_file, "GROUP_ROWS", 4)
    times = pa.chunked_array([[5, 4, 9, 8], [1, 2], [3, 3]])
    topics = pa.chunked_array([["a", "b", "a", None], ["c", "a"], ["b", "b"]])
    got = written(tmp_path / "x.parquet", times, topics, names="time_ns topic")
    assert got["time_ns"].to_pylist() == [5, 4, 9, 8, 1, 2, 3, 3]
    assert got["topic"].to_pylist() == ["a", "b", "a", None, "c", "a", "b", "b"]
    about = pq.ParquetFile(tmp_path / "x.parquet").metadata
    limits = [about.row_group(group).column(0).statistics for group in range(about.num_row_groups)]
    assert [(one.min, one.max, one.null_count) for one in limits] == [(4, 9, 0), (1, 3, 0)]


def limits_in(path: Path) -> list[dict[str, Any]]:
    """Least and greatest value of each column, by row group, as pyarrow reads them from the footer."""
    about = pq.ParquetFile(path).metadata
    groups = [about.row_group(number) for number in range(about.num_row_groups)]
    chunks = [[group.column(number) for number in range(group.num_columns)] for group in groups]
    return [
        {
            one.path_in_schema: (one.statistics.min, one.statistics.max) if one.statistics.has_min_max else None
            for one in group
        }
        for group in chunks
    ]


@pytest.mark.parametrize("most", [1, 4, 1 << 14], ids=["no codes", "codes at first", "codes"])
def test_limits_are_those_of_pyarrows_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Texts by their bytes: an upper-case letter is less than a lower-case one, and "ü" greater than both."""
    monkeypatch.setattr(encoders, "MOST_VALUES", most)
    monkeypatch.setattr(encoders, "_MOST_NAMES", most)
    monkeypatch.setattr(messages_file, "GROUP_ROWS", 6)
    texts = [["b", "Z", None], ["ü", "a\x00", ""], [None, None, None], ["a", "a", "x" * 256], [None] * 3, [None] * 3]
    numbers = [[5, -5, None], [1 << 30, 3, 4], [None] * 3, [7, 8, 9], [None] * 3, [None] * 3]
    topics = pa.chunked_array([pa.array(one, pa.string()) for one in texts])
    names = pa.chunked_array(topics.dictionary_encode().unify_dictionaries().chunks)
    lengths = pa.chunked_array([pa.array(one, pa.int32()) for one in numbers])
    written(tmp_path / "ours.parquet", topics, names, lengths, lengths, names="topic src length frame")
    plain = pa.table({"topic": topics, "src": topics, "length": lengths, "frame": lengths})
    pq.write_table(plain, tmp_path / "pyarrow.parquet", row_group_size=6)
    found = limits_in(tmp_path / "ours.parquet")
    assert found == limits_in(tmp_path / "pyarrow.parquet")
    assert [one["topic"] for one in found] == [("", "ü"), ("a", "x" * 256), None]


def test_a_batch_of_one_value_counts_for_the_limits(tmp_path: Path) -> None:
    texts = pa.chunked_array([["b", "c"], ["z", None, "z"], ["a", "a"], ["b", "c"]])
    names = pa.chunked_array(texts.dictionary_encode().unify_dictionaries().chunks)
    lengths = pa.chunked_array([[4, 5], [9, None, 9], [-3, -3], [4, 5]])
    got = written(tmp_path / "x.parquet", texts, names, lengths, lengths, names="topic src length frame")
    assert got["src"].to_pylist() == texts.to_pylist()
    assert got["length"].to_pylist() == lengths.to_pylist()
    (limits,) = limits_in(tmp_path / "x.parquet")
    assert limits == {"topic": ("a", "z"), "src": ("a", "z"), "length": (-3, 9), "frame": (-3, 9)}


LONG = "x" * 300
NEAR = "x" * 255
# The greatest text of a row group, and what the footer has in its place: 256 bytes at most, with the last one raised.
UPPER_BOUNDS = {
    "one byte": (LONG, NEAR + "y"),
    "a character that the cut would split": (NEAR + "ü" * 9, "x" * 254 + "y"),
    "two bytes raised to three": ("x" * 254 + "\u07ff" * 9, "x" * 254 + "\u0800"),
    "no surrogate": ("x" * 253 + "\ud7ff" * 9, "x" * 253 + "\ue000"),
    "the last character, which has no next": ("x" * 252 + "\U0010ffff" * 9, "x" * 251 + "y"),
}


@pytest.mark.parametrize(("most", "bound"), UPPER_BOUNDS.values(), ids=UPPER_BOUNDS)
@pytest.mark.parametrize("name", ["topic", "filter", "src"])
def test_a_text_too_long_for_the_footer_has_bounds(tmp_path: Path, name: str, most: str, bound: str) -> None:
    texts = pa.chunked_array([["w" * 300, most]])
    written(tmp_path / "x.parquet", texts.dictionary_encode() if name == "src" else texts, names=name)
    assert limits_in(tmp_path / "x.parquet") == [{name: ("w" * 256, bound)}]
    assert "w" * 256 < "w" * 300 <= most <= bound


def test_of_the_last_character_alone_there_is_no_bound(tmp_path: Path) -> None:
    written(tmp_path / "x.parquet", pa.chunked_array([["a", "\U0010ffff" * 65]]), names="topic")
    assert limits_in(tmp_path / "x.parquet") == [{"topic": None}]


def test_the_footer_says_whether_a_limit_is_the_value_itself() -> None:
    """Fields 7 and 8 of Statistics, true 1 and false 2, in Thrift's compact protocol; pyarrow does not show them."""
    for least, most, fields in (
        (b"a", b"b", "36 02 28 01 62 18 01 61 11 11 00"),
        (b"a", LONG.encode(), f"36 02 28 80 02 {NEAR.encode().hex(' ')} 79 18 01 61 12 11 00"),
        (b"a" * 300, b"b", f"36 02 28 01 62 18 80 02 {'61 ' * 256} 11 12 00"),
    ):
        chunk = metadata.Chunk(
            "topic", pa.string(), [], metadata.Compression.NONE, 2, 1, 0, 0, None, 4, limits=(least, most)
        )
        assert metadata.statistics(chunk).data == bytes.fromhex(fields)


def test_times_of_all_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages_file, "GROUP_ROWS", 2)
    with MessagesFile(LocalFile(str(tmp_path / "x.parquet"))) as file:
        for values in ([5, 6], [1, 2], [3, 3]):
            file.add(pa.record_batch([values], ["time_ns"]))
    assert file.times == (1, 6)


def test_an_error_leaves_no_file(tmp_path: Path) -> None:
    def broken() -> None:
        with MessagesFile(LocalFile(str(tmp_path / "x.parquet"))) as file:
            file.add(pa.record_batch([[1]], ["frame"]))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken()
    assert not list(tmp_path.iterdir())


def test_no_rows_no_file(tmp_path: Path) -> None:
    with MessagesFile(LocalFile(str(tmp_path / "x.parquet"))) as file:
        file.add(pa.record_batch([pa.array([], pa.int64())], ["frame"]))
    assert (file.rows, file.times, list(tmp_path.iterdir())) == (0, None, [])


def test_differences_are_those_of_the_specification(tmp_path: Path) -> None:
    """The example of Encodings.md: 7, 5, 3, 1, 2, 3, 4, 5 has the differences -2 -2 -2 1 1 1 1, the least is -2."""
    packed = bytes(encoders.Deltas(pa.int64()).packed(pa.array([7, 5, 3, 1, 2, 3, 4, 5]).to_numpy()))
    header = struct.pack("<BBBBB", 0x80, 0x01, 4, 8, 14)  # 128 in a block, 4 parts, 8 values, 7 as zigzag
    relative = [0, 0, 0, 3, 3, 3, 3] + [0] * 25
    bits = sum(value << (2 * place) for place, value in enumerate(relative)).to_bytes(8, "little")
    assert packed == header + bytes([3, 2, 0, 0, 0]) + bits
