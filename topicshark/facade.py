"""The functions of ``import topicshark`` that use several packages.

None of them imports Spark, except a `check` of large captures.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

if TYPE_CHECKING:
    import pyarrow as pa

    from generators.generate import GeneratedRun
    from spark_analysis.results.verdicts import CheckResult

Path = str | os.PathLike[str]
_ONE_UNIT = 1 << 62  # bytes: more than any capture has


def read_pcap(
    path: Path, *, dialect: Path | Sequence[Path] | None = None, columns: Sequence[str] | None = None
) -> pa.Table:
    """Read the messages of a capture (pcap or pcapng, optionally compressed, or a URI): one row per datagram.

    >>> table = read_pcap("building.pcap", columns=["frame", "message", "topic"])  # doctest: +SKIP
    >>> table.to_pandas().groupby("topic").size()                                  # doctest: +SKIP

    dialect   name or TOML file, or several; without it, the built-in dialects are detected
    columns   the columns to decode; without them, those of `topicshark decode`. docs/reference/schemas.md has all

    A damaged capture gives the rows before the damage and a Python warning. A file that is no capture raises
    `TopicsharkError`. The table is in memory: for captures of many gigabytes use `topicshark ingest` or Spark.
    """
    import pyarrow as pa

    from pcap_tools.codec.detect import wanted_dialects
    from pcap_tools.columnar.decode.schema import ALL_MESSAGES, COLUMNS
    from pcap_tools.errors import UsageError
    from spark_analysis.sources.planning import plan_capture
    from spark_analysis.sources.units import open_batches

    names = tuple(COLUMNS if columns is None else columns)
    unknown = [name for name in names if name not in ALL_MESSAGES.names]
    if unknown:
        raise UsageError(f"unknown column {unknown[0]!r}; known: {', '.join(ALL_MESSAGES.names)}")
    wanted = wanted_dialects(_names(dialect))
    (unit,) = plan_capture(os.fspath(path), wanted, _ONE_UNIT).units
    batches = open_batches(unit, wanted, names, plain=True, on_damage=_warn, on_warning=_warn)
    return pa.Table.from_batches(list(batches), schema=pa.schema([ALL_MESSAGES.field(name) for name in names]))


def check(
    sources: Path | Sequence[Path],
    *,
    dialect: Path | Sequence[Path] | None = None,
    broker: str | Sequence[str] = (),
    merge: bool = False,
    rules: Sequence[str] = (),
    limit: int = 1000,
    engine: Literal["auto", "local", "spark"] = "auto",
) -> CheckResult:
    """Check captures against the rules of their protocol, as `topicshark check` does.

    >>> result = check("building.pcap")                                            # doctest: +SKIP
    >>> [rule.id for rule in result.sessions[0].rules if rule.verdict == "fail"]   # doctest: +SKIP
    ['A-MISSING']

    sources   captures, folders, globs, URIs, folders of `topicshark ingest`
    dialect   name or TOML file, or several; without it, the built-in dialects are detected
    broker    HOST or HOST:PORT, or several; without it, brokers are detected
    merge     treat all captures as one session
    rules     ids of the rules to report; without them, all
    limit     maximum number of findings
    engine    auto starts Spark for more than 64 MiB; local never does
    """
    from pcap_tools.codec.detect import wanted_dialects
    from spark_analysis.check import check as check_sources

    brokers = (broker,) if isinstance(broker, str) else tuple(broker)
    return check_sources(
        _names(sources) or [],
        dialects=wanted_dialects(_names(dialect)),
        brokers=brokers,
        merge=merge,
        engine=engine,
        rules=tuple(rules),
        limit=limit,
    )


class GenerateOptions(TypedDict, total=False):
    """
    seed       the same seed gives the same bytes
    dialects   names or TOML files; without them, the scenario's own or colon
    form       message form to write, where a dialect has several
    faults     rate by name of fault: {"ack-missing": 0.1}
    network    fields of `generators.simulation.network.NetworkOptions`: {"loss": 0.05}
    capture    fields of `generators.capture.options.CaptureOptions`: {"point": "any"}
    sensors, dashboards, actuators, rounds   size of the scenario
    """

    seed: int
    dialects: Sequence[Path]
    form: str
    faults: Mapping[str, float]
    network: Mapping[str, Any]
    capture: Mapping[str, Any]
    client: str
    ipv6: bool
    sensors: int
    dashboards: int
    actuators: int
    rounds: int


def generate(scenario: str, output: Path | None = None, **options: Unpack[GenerateOptions]) -> GeneratedRun:
    """Simulate a scenario, and write its capture to ``output`` (.pcap or .pcapng).

    >>> run = generate("building", seed=2, sensors=2, rounds=1, faults={"ack-missing": 0.5})
    >>> sorted({fault["rule"] for fault in run.truth()["faults"]})
    ['A-MISSING']

    The result has the frames (``run.capture.frames``), the ground truth (``run.truth()``) and the names of the hosts
    (``run.host_names()``). `topicshark generate --list` lists scenarios, `--list-faults` faults.
    """
    from generators.capture.capture_point import write
    from generators.generate import GeneratorOptions
    from generators.generate import generate as simulate

    chosen: dict[str, Any] = dict(options)
    chosen["dialects"] = tuple(os.fspath(name) for name in chosen.get("dialects", ()))
    is_pcapng = output is not None and os.fspath(output).endswith(".pcapng")
    chosen["capture"] = {"format": "pcapng" if is_pcapng else "pcap", **chosen.get("capture", {})}
    run = simulate(GeneratorOptions(scenario, **chosen))
    if output is not None:
        write(run.capture, output, run.host_names())
    return run


def _names(given: Path | Sequence[Path] | None) -> list[str] | None:
    if given is None:
        return None
    if isinstance(given, str | os.PathLike):
        return [os.fspath(given)]
    return [os.fspath(one) for one in given]


def _warn(about: object) -> None:
    warnings.warn(str(about), stacklevel=3)
