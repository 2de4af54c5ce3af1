"""Rules of the wire format, one per error code of the decoders, and of senders and receivers."""

from __future__ import annotations

from ..rulebook import applicability
from .rule import Rule

_LOOK = "Look at the bytes: `topicshark decode` shows the offset."

RULES = (
    Rule(
        "W-EMPTY",
        "error",
        "A datagram has at least one byte.",
        "An empty datagram arrived at a port of the dialect.",
        "Look for a sender that sends its buffer before filling it, or for a port scanner.",
    ),
    Rule(
        "W-UNKNOWN-TYPE",
        "error",
        "The dialect defines the type of the message.",
        "No message of the dialect has this type, so receivers cannot interpret the datagram.",
        "Check the sender's constants. If the type is valid, add the message to the dialect file.",
        applicability.has_types,
    ),
    Rule(
        "W-INCOMPLETE",
        "error",
        "A datagram contains all fields of its message.",
        "The datagram ends inside a field: the sender omitted bytes or computed a wrong size.",
        f"{_LOOK} Compare them with the layout of the message.",
        applicability.has_sizes,
    ),
    Rule(
        "W-NO-DELIMITER",
        "error",
        "A field that ends at a delimiter has that delimiter.",
        "The delimiter is missing, so the receiver cannot find the end of the field.",
        "Write the delimiter even if nothing follows it.",
        applicability.has_delimiters,
    ),
    Rule(
        "W-BAD-MAGIC",
        "error",
        "Constant bytes have the values that the dialect defines.",
        "The constant bytes of this dialect differ: the datagram is of another protocol or version, or damaged.",
        f"{_LOOK} Check whether another program uses the port.",
        applicability.has_magic,
    ),
    Rule(
        "W-BAD-LENGTH",
        "error",
        "A length field equals the number of bytes that it counts.",
        "A length field contradicts the datagram. A receiver that relies on it reads too few bytes or too many.",
        "Count bytes, not characters. Check for lengths above 127 in a signed byte.",
        applicability.has_lengths,
    ),
    Rule(
        "W-BAD-VALUE",
        "error",
        "A number has one of the values that the dialect lists.",
        "A flag, code or digit has an undefined value.",
        "Check the sender's constants. If the value is valid, list it in the dialect file or set `open = true`.",
        applicability.has_values,
    ),
    Rule(
        "W-BAD-TEXT",
        "error",
        "A text contains only characters of its character set.",
        "A byte is not part of any character: wrong encoding, binary data in a text, or damage.",
        "Use the same explicit encoding in sender and receiver, not the platform's default.",
        applicability.has_charsets,
    ),
    Rule(
        "W-TRAILING-BYTES",
        "error",
        "Only padding may follow the last field.",
        "Extra bytes follow the last field, often the rest of a longer message in a reused buffer.",
        "Send exactly the bytes of the message, and clear buffers before reuse.",
        applicability.has_ends,
    ),
    Rule(
        "W-WILDCARD-TOPIC",
        "error",
        "The topic of a publish contains no wildcard.",
        "The topic of a publish contains a wildcard. Brokers treat this differently.",
        "Publish to each topic by name. Use wildcards only in subscriptions.",
        applicability.all_of(applicability.has_wildcards, applicability.publishes_name_topics),
    ),
    Rule(
        "P-SPEAKER",
        "error",
        "Only the broker sends broker messages, and only clients send client messages.",
        "The sender may not send this message. A receiver that does not check the source accepts it.",
        "Find the program at this address. Check source addresses in receivers.",
        applicability.has_speakers,
    ),
    Rule(
        "P-CLIENT-TO-CLIENT",
        "warning",
        "Clients send messages only to the broker, not to each other.",
        "A client sent a message directly to another client, or one of the two is an undetected broker.",
        "If one of the two is a broker, name it with `--broker`. If not, look for a hard-coded address in a client.",
    ),
)
