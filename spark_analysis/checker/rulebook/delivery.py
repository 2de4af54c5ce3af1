"""Rules of delivery, retained messages, topic numbers and the control loop."""

from __future__ import annotations

from ..rulebook import applicability
from .rule import Rule

_FORWARD = {
    "colon": 'report, "PUBLISH Packets"',
    "topicbyte": 'report, "Broker"',
    "portdigits": 'report, "Broker (manager)"',
    "topicnumber": 'report, "Broker"',
    "rolebyte": 'report, "Broker"',
    "mqttsn": "MQTT-SN 1.2, section 6.10",
}
_COPIES = _FORWARD | {"colon": 'report, "Broker" and "PUBLISH Packets"'}
_UNSUBSCRIBE = {
    "colon": 'report, "Subscriber" and "UNSUBSCRIBE Packets"',
    "topicnumber": 'report, "Broker"',
    "mqttsn": "MQTT-SN 1.2, section 6.9",
}
_RETAINED = {"colon": 'report, "Retained Messages"', "mqttsn": "MQTT-SN 1.2, section 5.3.4"}
_NUMBERS = {"topicnumber": 'report, "Publisher"'}
_CREATED = {"topicnumber": 'report, "Broker"'}
_LOOP = {"rolebyte": 'report, "Communication" and "Dashboard"'}

_DELIVERS = applicability.all_of(applicability.can_publish, applicability.can_subscribe)
_RETAINS = applicability.all_of(_DELIVERS, applicability.has_retained)

RULES = (
    Rule(
        "D-MISSING",
        "error",
        "Every subscriber of a matching filter gets the message.",
        "The broker did not forward a publish to one of its subscribers.",
        "Compare filter and topic. Look for wildcards that match one level only, and for wrongly stored subscribers.",
        _FORWARD,
        _DELIVERS,
        ("accepted",),
    ),
    Rule(
        "D-UNEXPECTED",
        "error",
        "A client gets only messages that match its subscriptions.",
        "A client got a message that matches none of its filters.",
        "Look for filters used as regular expressions, for ignored case, and for wrongly stored subscribers.",
        _FORWARD,
        _DELIVERS,
    ),
    Rule(
        "D-DUPLICATE",
        "error",
        "A subscriber gets the number of copies that the dialect defines.",
        "A subscriber got too many copies of a message.",
        "Look for subscriptions stored in a list instead of a set. Compare with `copies` in the dialect file.",
        _COPIES,
        _DELIVERS,
    ),
    Rule(
        "D-ALTERED",
        "error",
        "A subscriber gets the published payload unchanged.",
        "The broker changed the payload.",
        "Look for a reused buffer, a length truncated to one byte, or a text that is decoded and encoded again.",
        _FORWARD,
        applicability.all_of(_DELIVERS, applicability.has_payload, applicability.keeps_payload),
    ),
    Rule(
        "D-MISDIRECTED",
        "error",
        "A message goes to its subscriber, not to another client instead.",
        "The subscriber got no copy; another client got it instead.",
        "Look for an address variable that changes while the broker still sends forwards.",
        _FORWARD,
        _DELIVERS,
    ),
    Rule(
        "D-LATE",
        "error",
        "The broker forwards a message at once.",
        "The forward was sent seconds after the publish, long after those to other subscribers.",
        "`topicshark timing` shows forwarding times. Look for a subscriber that makes the broker wait.",
        _FORWARD,
        _DELIVERS,
    ),
    Rule(
        "D-REORDERED",
        "error",
        "Messages of one publisher on one topic arrive in the order of their publishes.",
        "A newer message overtook an older one, so the subscriber ends up with the older value.",
        "Look for a broker that handles messages of one topic in several threads.",
        _FORWARD,
        _DELIVERS,
    ),
    Rule(
        "D-AFTER-UNSUBSCRIBE",
        "error",
        "A client gets no messages for a filter after it has unsubscribed.",
        "A message arrived after the acknowledged unsubscription.",
        "Look for a second entry of the subscriber, and for a different filter comparison in unsubscribe.",
        _UNSUBSCRIBE,
        applicability.all_of(_DELIVERS, applicability.can_unsubscribe),
    ),
    Rule(
        "T-MISSING",
        "error",
        "A new subscriber gets the retained message of each topic that its filter matches.",
        "A later subscriber did not get a retained message.",
        "Check whether the broker looks up retained messages by the filter text instead of matching wildcards.",
        _RETAINED,
        _RETAINS,
    ),
    Rule(
        "T-STALE",
        "error",
        "The retained message is the last publish with the retain flag.",
        "A new subscriber got an older message, which a newer one had replaced.",
        "Look for a broker that keeps the first message, or that stores the new one before it removes the old one.",
        _RETAINED,
        _RETAINS,
    ),
    Rule(
        "T-ORDER",
        "error",
        "The retained message and the ACK of a subscription are sent in the order that the dialect defines.",
        "They were sent in the opposite order, which confuses a client that expects one before the other.",
        "Compare with `order` in the dialect file. If the broker's order is intended, change the file.",
        {"colon": 'report, "SUBSCRIBE Packets"', "mqttsn": "MQTT-SN 1.2, section 6.9"},
        applicability.all_of(_RETAINS, applicability.broker_acknowledges, applicability.orders_retained),
    ),
    Rule(
        "T-CLEARED",
        "error",
        "A publish without the retain flag does not change the retained message.",
        "After a publish without the retain flag, a new subscriber no longer got the retained message.",
        "Store a message only if its retain flag is set; never remove one if it is not.",
        _RETAINED,
        _RETAINS,
    ),
    Rule(
        "N-ZERO",
        "error",
        "A publisher uses a different number for each of its topics.",
        "Two topics of a publisher have the same number; 0 means that it is probably never written to the packet.",
        "Check that the publisher writes the number to the packet.",
        _NUMBERS,
        applicability.numbers_topics,
    ),
    Rule(
        "N-COLLISION",
        "error",
        "A topic number refers to the topic of the publisher that uses it.",
        "Two publishers use the same number, and a message went to the subscribers of the other's topic.",
        "Store numbers per publisher in the broker, or let the broker assign them.",
        _NUMBERS,
        applicability.all_of(applicability.numbers_topics, applicability.can_subscribe),
    ),
    Rule(
        "N-UNKNOWN-PUBLISH",
        "warning",
        "A publish has a topic number that its publisher has created.",
        "The topic of this message is unknown. It may have been created before the capture.",
        "Create the topic first, and wait for the answer.",
        _CREATED,
        applicability.all_of(applicability.numbers_topics, applicability.can_publish),
    ),
    Rule(
        "N-UNKNOWN-SUBSCRIBE",
        "warning",
        "A subscription names an existing topic.",
        "The topic is unknown, so the subscription has no effect. It may have been created before the capture.",
        "Subscribe after the topic was created. Read the broker's status message.",
        _CREATED,
        applicability.all_of(applicability.numbers_topics, applicability.can_subscribe),
    ),
    Rule(
        "X-LOOP",
        "error",
        "A dashboard that sends instructions answers each reading with one before the next reading arrives.",
        "The dashboard got a reading, but sent no instruction for its room.",
        "Look at the value and topic of the reading, and at the code of the dashboard that parses them.",
        _LOOP,
        applicability.has_loop,
    ),
    Rule(
        "X-WRONG-INSTRUCTION",
        "error",
        "The instruction is the reply that the dialect's control loop has for the reading.",
        "The instruction is wrong for its reading.",
        "Check the limits and the direction of the comparisons.",
        {"rolebyte": 'report, "Dashboard"'},
        applicability.has_loop,
    ),
)
