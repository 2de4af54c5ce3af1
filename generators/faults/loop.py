"""Faults of the application loop (``rolebyte``): a dashboard that gives no instruction to a reading, or a wrong one."""

from __future__ import annotations

from generators.scenarios.script import has_loop
from generators.simulation.activation import Activation, Edit, Label, Outgoing, Purpose, Sent
from generators.simulation.fault import Place, fault
from pcap_tools.dialect import Dialect
from reference_broker.client.applications import Dashboard, Publish, loop_of


def _has_loop(dialect: Dialect) -> str | None:
    return None if has_loop(dialect) else f"nobody instructs anybody in {dialect.name}"


def _instruction(activation: Activation) -> Publish | None:
    """What a dashboard is about to answer to a reading."""
    reaction = activation.reaction
    if reaction is None or activation.node is None or not isinstance(activation.node.application, Dashboard):
        return None
    return reaction if reaction.payload in _replies(activation) else None


def _replies(activation: Activation) -> list[bytes]:
    return [entry.reply.encode() for entry in loop_of(activation.site.dialect).replies]


def _wrong_reply(activation: Activation, due: bytes) -> bytes:
    """The first reply of the loop, or the second where the first is due."""
    first, second, *_ = _replies(activation)
    return second if due == first else first


def _reading(activation: Activation) -> list[Outgoing | Sent]:
    """The forward that brought the reading, and the sensor's publish."""
    forward = activation.cause
    if forward is None:
        return []
    return [*([forward.out.publish] if forward.out.publish else []), forward]


@fault("loop-broken", "X-LOOP", Place.APPLICATION, "a dashboard gives no instruction to a reading", fits=_has_loop)
def loop_broken(activation: Activation) -> Edit | None:
    instruction = _instruction(activation)
    if instruction is None:
        return None

    def edit() -> list[Label]:
        activation.reaction = None
        return [Label("X-LOOP", _reading(activation), "no instruction follows this reading", instruction.topic)]

    return edit


def _find_instruction(activation: Activation) -> None:
    """A wrong instruction leaves when the client has time for it: take note of it then. What a dashboard is told to
    publish leaves in that order."""
    queue: list[tuple[Publish, Label | None]] = activation.memory.setdefault(id(activation.node), [])
    instruction = _instruction(activation)
    if instruction is not None:
        queue.append((instruction, None))
    for out in activation.of(Purpose.REQUEST) if queue else ():
        said = Publish(out.message.topic or b"", out.message.payload or b"")
        at = next((at for at, (due, _) in enumerate(queue) if due == said), None)
        if at is not None and out.resend_of is None:
            label = queue[at][1]
            del queue[: at + 1]
            if label is not None:
                label.shown_by.append(out)


@fault(
    "loop-wrong",
    "X-WRONG-INSTRUCTION",
    Place.APPLICATION,
    "a dashboard gives the opposite instruction",
    follow=_find_instruction,
    fits=_has_loop,
)
def loop_wrong(activation: Activation) -> Edit | None:
    instruction = _instruction(activation)
    if instruction is None:
        return None

    def edit() -> list[Label]:
        wrong = Publish(instruction.topic, _wrong_reply(activation, instruction.payload))
        label = Label(
            "X-WRONG-INSTRUCTION", _reading(activation), "the instruction is the wrong one", instruction.topic
        )
        activation.reaction = wrong
        activation.memory[id(activation.node)][-1] = wrong, label
        return [label]

    return edit
