"""Rules of acknowledgements and resends."""

from __future__ import annotations

from ..rulebook import applicability
from .rule import Rule

_RESENT = applicability.all_of(applicability.broker_acknowledges, applicability.has_resends)

RULES = (
    Rule(
        "A-MISSING",
        "error",
        "The broker acknowledges every request.",
        "No ACK for a request, despite any resends. The client cannot know whether the broker received it.",
        "Compare the request with acknowledged ones: a broker that fails on a message often drops it silently.",
        applicability.broker_acknowledges,
    ),
    Rule(
        "A-UNSOLICITED",
        "error",
        "The broker sends an ACK only in answer to a request.",
        "A client without a pending request got an ACK. Without ids, it takes the ACK as that of its next request.",
        "Look for a broker that answers to a stored address instead of the sender's.",
        applicability.broker_acknowledges,
    ),
    Rule(
        "A-LATE",
        "error",
        "An ACK arrives before the resend time.",
        "The ACK arrived after the resend time, so the client resends needlessly or treats the request as lost.",
        "Find out what delays the broker before the ACK; `topicshark timing` shows ACK times.",
        applicability.all_of(applicability.broker_acknowledges, applicability.has_resends),
    ),
    Rule(
        "A-DUPLICATE",
        "error",
        "A request sent once gets one ACK.",
        "A second ACK arrived. Without ids, the client takes it as the ACK of its next request, even a lost one.",
        "Look for two places in the broker that acknowledge the same message.",
        applicability.broker_acknowledges,
    ),
    Rule(
        "A-MISDIRECTED",
        "error",
        "An ACK goes to the client that sent the request.",
        "Another client got the ACK and takes it as its own, while the sender keeps waiting.",
        "Send the ACK to the source address of the request.",
        applicability.broker_acknowledges,
    ),
    Rule(
        "A-ORDER",
        "error",
        "The ACK precedes or follows the forwards and status messages of its request, as the dialect defines.",
        "The broker answered in the opposite order, so the ACK does not show whether the message was forwarded.",
        "Compare with `order` in the dialect file. If the broker's order is intended, change the file.",
        applicability.all_of(applicability.broker_acknowledges, applicability.orders_acks),
    ),
    Rule(
        "A-ACK-OF-ACK",
        "error",
        "An ACK is never acknowledged.",
        "An ACK was sent in answer to an ACK. Two endpoints that both do this never stop.",
        "Check the message type before sending an ACK.",
        applicability.all_of(applicability.broker_acknowledges, applicability.clients_may_acknowledge),
    ),
    Rule(
        "A-CLIENT-MISSING",
        "warning",
        "A client acknowledges messages of the broker if the dialect demands it.",
        "The client sent no ACK, or the broker's message was lost after the capture point.",
        "Check that the client is running. Capture at the client to see whether the message arrived.",
        applicability.clients_acknowledge,
    ),
    Rule(
        "A-STATUS-MISSING",
        "error",
        "The ACK of a request is followed by the status message that the dialect demands.",
        "The request was acknowledged, but the client does not learn whether it succeeded.",
        "Look for a code path in the broker, usually an error path, that returns without an answer.",
        applicability.has_statuses,
    ),
    Rule(
        "R-MISSING",
        "error",
        "A client resends a request that gets no ACK.",
        "The request got no ACK, and the client did not resend it. If the request was lost, so is the message.",
        "Check that the client starts its timer for this kind of request, and that no other ACK stops the timer.",
        _RESENT,
    ),
    Rule(
        "R-ALTERED",
        "error",
        "A resend repeats the original message unchanged.",
        "The resend differs from the first send, so the first message is lost or there are two messages.",
        "Keep the bytes of the first send, and resend them.",
        _RESENT,
    ),
    Rule(
        "R-ALTERED-RETAIN",
        "error",
        "A resend has the retain flag of the first send.",
        "The resend asks the broker to retain a message that the first send did not ask to retain.",
        "Resend the bytes of the first send. The original system of `colon` breaks this rule, so it is a note there.",
        applicability.all_of(_RESENT, applicability.may_change_retain),
    ),
    Rule(
        "R-AFTER-ACK",
        "error",
        "A client does not resend an acknowledged request.",
        "The client resent a request after its ACK, so subscribers get the message twice.",
        "Check that the ACK stops the timer. An ACK that was lost after the capture point would explain the resend.",
        _RESENT,
    ),
    Rule(
        "R-EARLY",
        "error",
        "A client waits for the resend time before it resends.",
        "A request was resent long before the resend time, so the network and the broker do the work twice.",
        "Check the unit of the timer, and that there is no second timer.",
        _RESENT,
    ),
)
