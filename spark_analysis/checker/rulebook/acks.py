"""Rules of acknowledgement and of sending again."""

from __future__ import annotations

from ..rulebook import fits
from .rule import Rule

_ACKS = {
    "colon": "report 000, section 3.6.1",
    "topicbyte": "report 001, section 3.3",
    "topicnumber": "report 003, section 3.2",
    "rolebyte": "report 004, section 3.2",
    "mqttsn": "MQTT-SN 1.2, sections 6.5, 6.6 and 6.9",
}
_ORDER = {
    "colon": "report 000, section 3.6.1",
    "topicbyte": "report 001, section 3.3",
    "topicnumber": "report 003, section 3.3",
    "rolebyte": "report 004, section 3.4",
}
_CLIENT_ACKS = {
    "topicnumber": "report 003, section 3.2",
    "rolebyte": "report 004, section 3.2",
    "mqttsn": "MQTT-SN 1.2, section 6.10",
}
_RESENDS = {"colon": "report 000, section 3.6.1", "mqttsn": "MQTT-SN 1.2, section 6.13"}

_RESENT = fits.all_of(fits.broker_acknowledges, fits.has_resends)

RULES = (
    Rule(
        "A-MISSING",
        "error",
        "The broker acknowledges every request.",
        "No ACK came for a request, however often it was sent. The client does not know whether it was heard.",
        "Look at what is special about the request: brokers that fail at one message often fail in silence.",
        _ACKS,
        fits.broker_acknowledges,
    ),
    Rule(
        "A-UNSOLICITED",
        "error",
        "The broker acknowledges only what it was asked.",
        "A client got an ACK without a request that it could answer. Without ids it will take it for the next ACK.",
        "Look for a broker that answers to a remembered address instead of the sender's.",
        _ACKS,
        fits.broker_acknowledges,
    ),
    Rule(
        "A-LATE",
        "error",
        "An ACK comes before the client has to send again.",
        "The ACK came only after the resend time: the request was sent again for nothing, or counts as lost.",
        "Look at what keeps the broker busy before the ACK; `topicshark timing` shows how long ACKs take.",
        _ACKS | _RESENDS,
        fits.broker_acknowledges,
    ),
    Rule(
        "A-DUPLICATE",
        "error",
        "A request that was sent once is acknowledged once.",
        "A second ACK came. Without ids a client takes it for the ACK of its next request, which may be lost.",
        "Look for two places in the broker that answer the same message.",
        _ACKS,
        fits.broker_acknowledges,
    ),
    Rule(
        "A-MISDIRECTED",
        "error",
        "An ACK goes to the client that sent the request.",
        "Another client got the ACK: it believes in an answer that is not its own, and the sender waits.",
        "Take the address for the answer from the datagram that is answered.",
        _ACKS,
        fits.broker_acknowledges,
    ),
    Rule(
        "A-ORDER",
        "error",
        "The ACK stands where the dialect says: before the forwards and status messages of its request, or after them.",
        "The broker answered in the other order. An ACK then no longer says that the message was passed on.",
        "Compare with `order` in the dialect file. If the broker is meant to be so, change the file.",
        _ORDER,
        fits.all_of(fits.broker_acknowledges, fits.orders_acks),
    ),
    Rule(
        "A-ACK-OF-ACK",
        "error",
        "Nobody acknowledges an ACK.",
        "An ACK was answered by an ACK. Two ends that both do so never stop.",
        "Look at the type before answering.",
        _ACKS,
        fits.all_of(fits.broker_acknowledges, fits.clients_may_acknowledge),
    ),
    Rule(
        "A-CLIENT-MISSING",
        "warning",
        "A client acknowledges what the broker sends it, where the dialect asks for it.",
        "No ACK of the client is seen. It owes one, or the message was lost behind the place of the capture.",
        "Check that the client is still there; capture at the client to see whether the message arrived.",
        _CLIENT_ACKS,
        fits.clients_acknowledge,
    ),
    Rule(
        "A-STATUS-MISSING",
        "error",
        "The status message that a request is due follows its ACK.",
        "The request was acknowledged, but nothing tells the client whether it succeeded.",
        "Look for a branch of the broker, mostly that of a failure, which returns without an answer.",
        {"topicnumber": "report 003, sections 3.2 and 3.3"},
        fits.has_statuses,
    ),
    Rule(
        "R-MISSING",
        "error",
        "A client sends a request again if no ACK comes.",
        "The request stayed unanswered and was not sent again. If it was lost, so is the message.",
        "Check that the client starts its timer for this kind of request, and that no other ACK stops it.",
        _RESENDS,
        _RESENT,
    ),
    Rule(
        "R-ALTERED",
        "error",
        "A resend is the same message again.",
        "What was sent again differs from what was sent first: the first message is lost, or there are now two.",
        "Keep the bytes that were sent, and send those.",
        _RESENDS,
        _RESENT,
    ),
    Rule(
        "R-ALTERED-RETAIN",
        "error",
        "A resend has the retain flag of the first send.",
        "The resend asks the broker to retain a message that was not to be retained.",
        "Send the first bytes again. The running system of report 000 does this itself, so that it is a note there.",
        _RESENDS,
        fits.all_of(_RESENT, fits.may_change_retain),
    ),
    Rule(
        "R-AFTER-ACK",
        "error",
        "A request that was acknowledged is not sent again.",
        "The client sent a request again though its ACK had come: subscribers get the message twice.",
        "Check that the ACK stops the timer. If the ACK may have been lost behind the capture, nobody is to blame.",
        _RESENDS,
        _RESENT,
    ),
    Rule(
        "R-EARLY",
        "error",
        "A client waits for the resend time before it sends again.",
        "A request was sent again long before its ACK was late: the network and the broker do the work twice.",
        "Check the unit of the timer, and that no second timer runs.",
        _RESENDS,
        _RESENT,
    ),
)
