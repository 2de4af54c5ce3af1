"""Coverage-guided fuzzing with atheris: inputs that reach new branches of the codec or of the dialect loader are kept.

    pip install -e '.[fuzz]'
    python -m fuzzing.decoders.guided codec CORPUS --seconds 300    (then all decoders get the corpus)
    python -m fuzzing.decoders.guided loader CORPUS --seconds 300

libFuzzer ends its process when it is done or finds something, so it runs in one of its own.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

CODEC_MODULES = [
    "pcap_tools.codec.walk",
    "pcap_tools.codec.codec",
    "pcap_tools.codec.walk",
    "pcap_tools.codec.builder",
]
LOADER_MODULES = [
    f"pcap_tools.dialect.{name}"
    for name in ("load", "spec", "structure_check", "compiler", "positions", "wording", "problems")
]
LONGEST = {"codec": 600, "loader": 4000}
STEPS_SECONDS = 10  # for one input: more is a hang


def _atheris() -> Any:
    try:
        return importlib.import_module("atheris")
    except ImportError:
        sys.exit("fuzzing: atheris is not installed; pip install -e '.[fuzz]' (Linux and macOS)")


# -- what is tried ---------------------------------------------------------------------------------------------------


def codec_target() -> Callable[[bytes], None]:
    """The first byte chooses a dialect, which decodes the rest: no exception, offsets inside, valid is built again."""
    from fuzzing.decoders.differential import known_dialects
    from pcap_tools.codec import Codec

    codecs = [Codec(dialect) for dialect in known_dialects().values()]

    def try_one(data: bytes) -> None:
        codec, datagram = codecs[data[0] % len(codecs)] if data else codecs[0], data[1:]
        message = codec.decode(datagram)
        if not 0 <= (message.error_offset or 0) <= len(datagram):
            raise RuntimeError(f"{codec.dialect.name}: the error lies at {message.error_offset} of {len(datagram)}")
        if message.error is None and codec.build(message) != datagram:
            raise RuntimeError(f"{codec.dialect.name}: built again as other bytes")
        if (message.error is None) != (codec.decode_if_valid(datagram) is not None):
            raise RuntimeError(f"{codec.dialect.name}: valid for decode or for decode_if_valid only")

    return try_one


def loader_target() -> Callable[[bytes], None]:
    """A dialect file is taken or refused with our own error; one that is taken decodes."""
    from pcap_tools.codec import Codec
    from pcap_tools.dialect import parse_dialect
    from pcap_tools.errors import TopicsharkError

    def try_one(data: bytes) -> None:
        try:
            dialect = parse_dialect(data.decode("utf-8", "replace"))
        except TopicsharkError:
            return
        codec = Codec(dialect)
        for datagram in (b"", b"\x01", bytes(40), b"\x01" * 40, b"\xff" * 40, b"1:2:3:4:5"):
            codec.decode(datagram)

    return try_one


TARGETS = {"codec": (CODEC_MODULES, codec_target), "loader": (LOADER_MODULES, loader_target)}


# -- where it starts -------------------------------------------------------------------------------------------------


def write_seeds(target: str, folder: Path) -> None:
    """The vectors, or the dialects that there are and some of rng."""
    folder.mkdir(parents=True, exist_ok=True)
    for place, data in enumerate(_codec_seeds() if target == "codec" else _loader_seeds()):
        (folder / f"seed{place:04}").write_bytes(data)


def _codec_seeds() -> list[bytes]:
    from fuzzing.decoders.differential import known_dialects
    from tests.vectors import load_vectors

    places = {name: bytes([place]) for place, name in enumerate(known_dialects())}
    vectors = [vector for vector in load_vectors() if len(vector.datagram) < LONGEST["codec"]]
    return sorted(places[vector.dialect] + vector.datagram for vector in vectors)


def _loader_seeds() -> list[bytes]:
    from fuzzing.decoders.datagrams import seeded
    from fuzzing.decoders.random_dialects import dialect_text
    from pcap_tools.dialect import builtin_names, builtin_text

    texts = [builtin_text(name) for name in builtin_names()]
    texts += [dialect_text(f"d{place}", seeded("guided", place)) for place in range(40)]
    return [text.encode("utf-8", "replace") for text in texts]


# -- running ---------------------------------------------------------------------------------------------------------


def fuzz(target: str, corpus: Path, seconds: int) -> None:
    """Inside the process that libFuzzer ends."""
    atheris = _atheris()
    modules, make = TARGETS[target]
    with atheris.instrument_imports(include=modules):
        for module in modules:
            importlib.import_module(module)
    options = [f"-max_total_time={seconds}", f"-max_len={LONGEST[target]}", f"-timeout={STEPS_SECONDS}"]
    artifacts = f"-artifact_prefix={corpus.parent}/found-{target}-"
    atheris.Setup([sys.argv[0], *options, artifacts, "-rss_limit_mb=1500", str(corpus)], make())
    atheris.Fuzz()


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: not 0 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m fuzzing.decoders.guided", description=__doc__.partition("\n")[0])
    parser.add_argument("target", choices=list(TARGETS))
    parser.add_argument("corpus", type=Path, help="a folder; it is made and filled with seeds, and grows")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.inside:
        fuzz(options.target, options.corpus, options.seconds)
        return 0
    _atheris()
    write_seeds(options.target, options.corpus)
    words = [options.target, str(options.corpus), "--seconds", str(options.seconds), "--inside"]
    code = subprocess.run([sys.executable, "-m", "fuzzing.decoders.guided", *words], check=False).returncode
    print(f"{options.target}: {sum(1 for _ in options.corpus.iterdir()):,} inputs kept, exit code {code}")
    if code or options.target != "codec":
        return code
    from fuzzing.decoders.differential import main as differential

    return differential(["--corpus", str(options.corpus)])


if __name__ == "__main__":
    sys.exit(main())
