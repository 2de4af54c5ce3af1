"""Faults of parties: a client says what only the broker says."""

from __future__ import annotations

from generators.faults.applicability import all_of, broker_acknowledges, meaning_of
from generators.faults.occasions import acknowledged_request, filled
from generators.simulation.activation import Duty, Edit, Label, Turn
from generators.simulation.fault import Place, fault
from pcap_tools.codec import Codec
from pcap_tools.dialect import Dialect
from pcap_tools.errors import UsageError

WORD = b"20"


def _brokers_own(codec: Codec, form: str | None = None) -> bytes | None:
    """A message that is the broker's alone; rather one that clients would believe than an ACK."""
    dialect = codec.dialect
    names = [name for name, variants in dialect.spec.messages.items() if variants[0].sender == "broker"]
    for name in sorted(names, key=lambda name: meaning_of(dialect, name) == "ack"):
        try:
            layout = dialect.forms[0].layouts_of(name)[0]
            return codec.build(codec.message(name, filled(layout, WORD), form=form))
        except UsageError:
            continue
    return None


def _has_brokers_own(dialect: Dialect) -> str | None:
    return None if _brokers_own(Codec(dialect)) is not None else f"no message of {dialect.name} is the broker's alone"


@fault(
    "wrong-speaker",
    "P-SPEAKER",
    Place.CLIENT,
    "a client sends a message that only the broker sends",
    fits=all_of(broker_acknowledges, _has_brokers_own),
)
def wrong_speaker(turn: Turn) -> Edit | None:
    request = acknowledged_request(turn)
    made = _brokers_own(turn.codec, request.message.form) if request is not None else None
    if made is None:
        return None

    def edit() -> list[Label]:
        stray = turn.stray(made, turn.site.broker)
        if stray.message.meaning != "ack":
            stray.duty = Duty.REQUEST  # the broker may well acknowledge it
        turn.outs.append(stray)
        return [Label("P-SPEAKER", [stray], f"{stray.message.message} is for the broker to say")]

    return edit
