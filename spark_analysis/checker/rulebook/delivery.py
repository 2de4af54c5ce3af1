"""Rules of delivery, retained messages, topic numbers and the application's loop."""

from __future__ import annotations

from ..rulebook import fits
from .rule import Rule

_FORWARD = {
    "colon": "report 000, section 3.5.1",
    "topicbyte": "report 001, section 3.3",
    "portdigits": "report 002, section 3.3",
    "topicnumber": "report 003, section 3.3",
    "rolebyte": "report 004, section 3.4",
    "mqttsn": "MQTT-SN 1.2, section 6.10",
}
_COPIES = _FORWARD | {"colon": "report 000, sections 3.5 and 3.5.1"}
_UNSUBSCRIBE = {
    "colon": "report 000, sections 3.4 and 3.5.3",
    "topicnumber": "report 003, section 3.3",
    "mqttsn": "MQTT-SN 1.2, section 6.9",
}
_RETAINED = {"colon": "report 000, section 3.6.2", "mqttsn": "MQTT-SN 1.2, section 5.3.4"}
_NUMBERS = {"topicnumber": "report 003, section 3.5"}
_CREATED = {"topicnumber": "report 003, section 3.3"}
_LOOP = {"rolebyte": "report 004, sections 2.3 and 3.3"}

_DELIVERS = fits.all_of(fits.can_publish, fits.can_subscribe)
_RETAINS = fits.all_of(_DELIVERS, fits.has_retained)

RULES = (
    Rule(
        "D-MISSING",
        "error",
        "Every subscriber of a matching filter gets the message.",
        "A message was published and the broker did not pass it on to somebody who had subscribed.",
        "Compare filter and topic by hand; look for wildcards that stop at a level, and for subscribers filed wrongly.",
        _FORWARD,
        _DELIVERS,
    ),
    Rule(
        "D-UNEXPECTED",
        "error",
        "Nobody gets a message that they have not subscribed to.",
        "A client got a message that none of its filters matches.",
        "Look for filters taken for regular expressions, for case that is ignored, for subscribers filed wrongly.",
        _FORWARD,
        _DELIVERS,
    ),
    Rule(
        "D-DUPLICATE",
        "error",
        "A subscriber gets as many copies as the dialect says.",
        "A subscriber got a message more often than it is due.",
        "Look for subscriptions kept in a list where a set is meant; compare with `copies` in the dialect file.",
        _COPIES,
        _DELIVERS,
    ),
    Rule(
        "D-ALTERED",
        "error",
        "A subscriber gets the payload that was published.",
        "The payload changed on its way through the broker.",
        "Look for a buffer used again, a length cut to a byte, or a text decoded and encoded.",
        _FORWARD,
        fits.all_of(_DELIVERS, fits.has_payload, fits.keeps_payload),
    ),
    Rule(
        "D-MISDIRECTED",
        "error",
        "A message goes to the subscriber and not to somebody else in its place.",
        "The subscriber got nothing, and another client got its copy.",
        "Look for an address that is changed while forwards are still being sent.",
        _FORWARD,
        _DELIVERS,
    ),
    Rule(
        "D-LATE",
        "error",
        "A message is passed on at once.",
        "The forward came seconds after the publish, when others had long got theirs.",
        "`topicshark fanout` shows how long forwards take; look for a subscriber that makes the broker wait.",
        _FORWARD,
        _DELIVERS,
    ),
    Rule(
        "D-REORDERED",
        "error",
        "Messages of one publisher under one topic arrive in the order in which they were published.",
        "A newer message overtook an older one: the subscriber ends up with the older value.",
        "Look for a broker that handles messages of one topic in several threads.",
        _FORWARD,
        _DELIVERS,
    ),
    Rule(
        "D-AFTER-UNSUBSCRIBE",
        "error",
        "Nobody gets messages for a filter from which they have unsubscribed.",
        "The unsubscription was answered, and still a message came.",
        "Look for a second entry of the same subscriber, and for filters compared otherwise than when subscribing.",
        _UNSUBSCRIBE,
        fits.all_of(_DELIVERS, fits.can_unsubscribe),
    ),
    Rule(
        "T-MISSING",
        "error",
        "A new subscriber gets the retained message of each topic that its filter takes.",
        "A message was retained, and a later subscriber did not get it.",
        "Check whether the broker looks up retained messages by the filter's text only, wildcards and all.",
        _RETAINED,
        _RETAINS,
    ),
    Rule(
        "T-STALE",
        "error",
        "The retained message is the last one that was to be retained.",
        "A new subscriber got an older message than the one that had replaced it.",
        "Look for a broker that keeps the first message, or that stores before the old one is removed.",
        _RETAINED,
        _RETAINS,
    ),
    Rule(
        "T-ORDER",
        "error",
        "Retained message and ACK of a subscription come in the dialect's order.",
        "They came the other way round: a client that waits for one of them before the other is misled.",
        "Compare with `order` in the dialect file. If the broker is meant to be so, change the file.",
        {"colon": "report 000, section 3.5.2", "mqttsn": "MQTT-SN 1.2, section 6.9"},
        fits.all_of(_RETAINS, fits.broker_acknowledges, fits.orders_retained),
    ),
    Rule(
        "T-CLEARED",
        "error",
        "A message that is not to be retained leaves the retained one alone.",
        "After a plain publish to the topic, a new subscriber no longer got the message that was retained.",
        "Store on the retain flag only, and never remove where it is not set.",
        _RETAINED,
        _RETAINS,
    ),
    Rule(
        "N-ZERO",
        "error",
        "A publisher gives each of its topics a number of its own.",
        "Two topics of one publisher have the same number, mostly 0: the number is never written into the packet.",
        "Check that the number is put into the buffer that is sent.",
        _NUMBERS,
        fits.numbers_topics,
    ),
    Rule(
        "N-COLLISION",
        "error",
        "A number means the topic of the publisher that uses it.",
        "Two publishers use one number, and a message went to the subscribers of the other's topic.",
        "Have the broker keep numbers by publisher, or have it give them out.",
        _NUMBERS,
        fits.all_of(fits.numbers_topics, fits.can_subscribe),
    ),
    Rule(
        "N-UNKNOWN-PUBLISH",
        "warning",
        "A publish has a number that its publisher has created.",
        "Nobody can know the topic of this message. The creation may lie before the capture.",
        "Create the topic first, and wait for the answer.",
        _CREATED,
        fits.all_of(fits.numbers_topics, fits.can_publish),
    ),
    Rule(
        "N-UNKNOWN-SUBSCRIBE",
        "warning",
        "A subscription names a topic that exists.",
        "Nobody has created the topic, so the subscription has no effect. The creation may lie before the capture.",
        "Subscribe once the topic was created; read the broker's status message.",
        _CREATED,
        fits.all_of(fits.numbers_topics, fits.can_subscribe),
    ),
    Rule(
        "X-LOOP",
        "error",
        "A dashboard that instructs answers each reading with an instruction before the next reading comes.",
        "A reading came to the dashboard, and no instruction for its room followed.",
        "Look at the value and the topic of the reading, and at how the dashboard splits and parses them.",
        _LOOP,
        fits.has_loop,
    ),
    Rule(
        "X-WRONG-INSTRUCTION",
        "error",
        "Above 30 a dashboard says `lower_temperature`, below 25 `raise_temperature`, else `good_job`.",
        "The instruction does not fit the reading that it answers.",
        "Check the limits and the signs of the comparison.",
        {"rolebyte": "report 004, section 3.3"},
        fits.has_loop,
    ),
)
