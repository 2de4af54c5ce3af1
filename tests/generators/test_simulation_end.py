"""A simulated run goes on after its last action for as long as a broker may still have to say something again."""

from __future__ import annotations

import pytest

from generators.simulation.engine import START_NS, Simulation
from generators.simulation.network import Cut, NetworkOptions
from generators.simulation.site import Site, Verb
from pcap_tools.dialect import load_dialect
from reference_broker.client.requests import EventKind
from reference_broker.messages.sending import SECOND


@pytest.mark.parametrize("seconds", [5, 35])
def test_a_forward_of_the_last_publish_that_is_lost_is_sent_again(seconds: int) -> None:
    """MQTT-SN at QoS 1: the subscriber cannot be reached when the publish comes, and is again some seconds later."""
    site = Site(load_dialect("mqttsn"))
    publisher, subscriber = site.node("publisher"), site.node("subscriber")
    site.at(0, subscriber, Verb.SUBSCRIBE, b"home/fan")
    site.at(2, publisher, Verb.PUBLISH, b"home/fan", b"ON")
    begin = START_NS + 2 * SECOND
    cut = Cut(subscriber.endpoint[0], begin, begin + seconds * SECOND)
    run = Simulation([site], network=NetworkOptions(cuts=(cut,))).run()
    received = [told for told in run.told if told.event.kind is EventKind.RECEIVED]
    assert [(told.node.name, told.event.payload) for told in received] == [("subscriber", b"ON")]
    assert received[0].time_ns > cut.end_ns
