"""topicshark from Python: read, check, analyse and generate publish/subscribe traffic over UDP.

    import topicshark

    run = topicshark.generate("building", "building.pcap", faults={"ack-missing": 0.1})
    messages = topicshark.read_pcap("building.pcap")       # pyarrow.Table; .to_pandas() makes a DataFrame
    result = topicshark.check("building.pcap")             # verdicts and findings
    print(result.sessions[0].verdict)                      # fail

``import topicshark`` takes milliseconds: each name below imports its packages when it is first used. Only `analyse` and
`notebook_session` need Spark.

    load_dialect       a dialect by name or TOML file
    Codec              decode and build single datagrams
    load_layer         the scapy layers of a dialect
    read_pcap          the messages of a capture as a pyarrow table
    check              conformance: verdicts, findings, timing, fan-out
    analyse            all tables of the analysis as Spark DataFrames
    notebook_session   the Spark session of a notebook
    generate           simulated traffic with labelled faults
    open_pyshark       a capture in pyshark with the dissector loaded, also in Jupyter
    TopicsharkError    unusable input
    UsageError         wrong arguments
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pcap_tools.codec import Codec
    from pcap_tools.dialect import load_dialect
    from pcap_tools.errors import TopicsharkError, UsageError
    from pcap_tools.layers import load_layer
    from spark_analysis.dataframes import analyse
    from spark_analysis.engine.notebook_session import notebook_session
    from topicshark.facade import check, generate, read_pcap
    from topicshark.pyshark_packets import open_pyshark

_HOME = {
    "load_dialect": "pcap_tools.dialect",
    "Codec": "pcap_tools.codec",
    "load_layer": "pcap_tools.layers",
    "read_pcap": "topicshark.facade",
    "check": "topicshark.facade",
    "analyse": "spark_analysis.dataframes",
    "notebook_session": "spark_analysis.engine.notebook_session",
    "generate": "topicshark.facade",
    "open_pyshark": "topicshark.pyshark_packets",
    "TopicsharkError": "pcap_tools.errors",
    "UsageError": "pcap_tools.errors",
}
__all__ = [
    "Codec",
    "TopicsharkError",
    "UsageError",
    "analyse",
    "check",
    "generate",
    "load_dialect",
    "load_layer",
    "notebook_session",
    "open_pyshark",
    "read_pcap",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
