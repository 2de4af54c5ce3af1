"""What the frames of a capture have to do with each other, for `decode --links`: the checker's own pairs, so that it
says what `check` and the dissector say. The whole capture is analysed first, so this is not for streams.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

LARGEST = 256 << 20  # bytes of a capture; its exchanges and deliveries are kept in memory

Links = dict[int, dict[str, Any]]


def links_of(file: str, named: Any) -> Links:
    """By frame: of ACKs ``ack_to`` and ``ack_quality`` (``queued``: taken in order only), of requests ``ack_in``, of
    forwards ``forward_of`` or the ``subscription`` that a retained message is for, of publishes ``due``, ``delivered``
    and ``missing``; of both the ``topic_name``."""
    links: Links = defaultdict(dict)
    tables = _tables(file, named)
    for row in _rows(tables["exchanges"]):
        _add_exchange(links, row)
    for row in _rows(tables["deliveries"]):
        _add_delivery(links, row)
    return links


def _tables(file: str, named: Any) -> dict[str, list[Any]]:
    from pcap_tools.codec.detect import wanted_dialects
    from pcap_tools.errors import UsageError
    from spark_analysis.engine.engines import LocalEngine
    from spark_analysis.pipeline import Options, analyse_sessions
    from spark_analysis.sessions.ingested import find_sources
    from spark_analysis.sessions.plans import plan_sources
    from spark_analysis.tables.packing import unpack

    wanted = wanted_dialects(named)
    sessions, _ = plan_sources(find_sources([file]), wanted, False, LARGEST)
    kinds = ["exchanges", "deliveries"]
    if os.path.getsize(file) > LARGEST:
        raise UsageError(f"--links analyses the whole capture first, {LARGEST >> 20} MB at most: {file}")
    engine = LocalEngine()
    analysed = analyse_sessions(engine, sessions, Options(wanted, summaries=False, tables=frozenset(kinds)))
    found: dict[str, list[Any]] = {kind: [] for kind in kinds}
    for row in engine.collect(analysed.rows, kinds, "links"):
        found[row.kind].append(unpack(row.data))
    return found


def _rows(tables: list[Any]) -> Iterator[dict[str, Any]]:
    for table in tables:
        yield from table.to_pylist()


def _add_exchange(links: Links, row: dict[str, Any]) -> None:
    if row["ack"] is None:
        return
    ack = links[row["ack"]["frame"]]
    ack["ack_to"], ack["ack_quality"] = row["frame"], row["quality"]
    links[row["frame"]]["ack_in"] = row["ack"]["frame"]


def _add_delivery(links: Links, row: dict[str, Any]) -> None:
    forward, publish = row["forward"], row["publish"]
    if forward is not None and publish is not None:
        one = links[forward["frame"]]
        one["subscription" if row["retained"] else "forward_of"] = publish["frame"]
        one["topic_name"] = row["topic"]
    if publish is None or row["retained"] or row["outcome"] == "optional":
        return
    one = links[publish["frame"]]
    one["topic_name"] = row["topic"]
    one["due"] = one.get("due", 0) + 1
    one["delivered"] = one.get("delivered", 0) + (forward is not None)
    if row["outcome"] == "missing":
        one.setdefault("missing", []).append(row["subscriber"])


def words_of(link: dict[str, Any], topic: str | None) -> str:
    """``(home/kitchen) → 3 of 4 subscribers``, ``[forward of 17]``, ``[ACK to 27]``: as the dissector puts it."""
    from pcap_tools.escaping import escape_text

    words = []
    name = link.get("topic_name")
    if name and name != topic:
        words.append(f"({escape_text(name)})")
    if "due" in link:
        due, got = link["due"], link["delivered"]
        count = f"{got}" if got == due else f"{got} of {due}"
        words.append(f"→ {count} subscriber{'' if due == 1 else 's'}")
    if "forward_of" in link:
        words.append(f"[forward of {link['forward_of']}]")
    if "subscription" in link:
        words.append(f"[retained, for {link['subscription']}]")
    if "ack_to" in link:
        unsure = " perhaps" if link["ack_quality"] == "queued" else ""
        words.append(f"[ACK{unsure} to {link['ack_to']}]")
    return " ".join(words)
