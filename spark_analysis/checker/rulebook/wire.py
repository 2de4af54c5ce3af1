"""Rules of the wire format, one for each error that decoders tell, and of who speaks to whom."""

from __future__ import annotations

from ..rulebook import fits
from .rule import Rule

_FORMAT = {
    "colon": "report 000, section 3.1",
    "topicbyte": "report 001, section 3.1",
    "portdigits": "report 002, section 3.5",
    "topicnumber": "report 003, sections 3.1 and 4.2",
    "rolebyte": "report 004, section 2.4",
    "mqttsn": "MQTT-SN 1.2, section 5.2",
}
_FIELDS = _FORMAT | {"mqttsn": "MQTT-SN 1.2, sections 5.3 and 5.4"}
_SPEAKERS = {
    "colon": "report 000, sections 3.5 and 3.6.1",
    "topicnumber": "report 003, sections 3.3 to 3.5 and 4.1",
    "rolebyte": "report 004, section 2.4",
}
_MIDDLE = {
    "colon": "report 000, section 3.4",
    "topicbyte": "report 001, section 3.3",
    "portdigits": "report 002, section 2.4",
    "topicnumber": "report 003, section 4.1",
    "rolebyte": "report 004, section 3.4",
}
_LOOK = "Look at the bytes: `topicshark decode` names the offset."

RULES = (
    Rule(
        "W-EMPTY",
        "error",
        "A datagram has at least one byte.",
        "A datagram without any byte came to a port of the dialect.",
        "Look for a sender that sends a buffer before it is filled, or a port scanner.",
        _FORMAT,
    ),
    Rule(
        "W-UNKNOWN-TYPE",
        "error",
        "The type of a message is one that the dialect knows.",
        "No message of the dialect is selected by this value, so nobody can know what the datagram means.",
        "Check the sender's constants. If the type is real, add the message to the dialect file.",
        _FORMAT,
        fits.has_types,
    ),
    Rule(
        "W-INCOMPLETE",
        "error",
        "A datagram holds all fields of its message.",
        "The datagram ends inside a field: the sender left something out, or counted wrongly.",
        f"{_LOOK} Compare what the sender writes with the layout of the message.",
        _FIELDS,
        fits.has_sizes,
    ),
    Rule(
        "W-NO-DELIMITER",
        "error",
        "A field that ends at a delimiter has it.",
        "The delimiter never comes, so the receiver cannot tell the topic from what follows.",
        "Have the sender write the delimiter even if nothing follows it.",
        _FIELDS,
        fits.has_delimiters,
    ),
    Rule(
        "W-BAD-MAGIC",
        "error",
        "Constant bytes are the dialect's.",
        "The bytes that mark a datagram of this dialect differ: another protocol, another version, or damage.",
        f"{_LOOK} Check whether something else uses the port.",
        _FORMAT,
        fits.has_magic,
    ),
    Rule(
        "W-BAD-LENGTH",
        "error",
        "A length tells how many bytes there are.",
        "A length contradicts the datagram. A receiver that believes it reads too little, or bytes that are not there.",
        "Count bytes and not characters, and mind numbers above 127 in a signed byte.",
        _FORMAT | {"mqttsn": "MQTT-SN 1.2, section 5.2.1"},
        fits.has_lengths,
    ),
    Rule(
        "W-BAD-VALUE",
        "error",
        "A number is one of those that the dialect names.",
        "A flag, code or digit has a value without a meaning.",
        "Check the sender's constants. If the value is real, name it in the dialect file or set `open = true`.",
        _FIELDS,
        fits.has_values,
    ),
    Rule(
        "W-BAD-TEXT",
        "error",
        "A text holds only characters of its character set.",
        "A byte is not part of any character: another encoding, binary data in a text, or damage.",
        "Have sender and receiver name the same encoding; do not rely on the platform's default.",
        _FIELDS,
        fits.has_charsets,
    ),
    Rule(
        "W-TRAILING-BYTES",
        "error",
        "Nothing but padding follows the last field.",
        "Bytes follow that no field accounts for: often the rest of a longer message in a buffer used again.",
        "Send as many bytes as the message has, and clear buffers before they are used again.",
        _FIELDS,
        fits.has_ends,
    ),
    Rule(
        "W-WILDCARD-TOPIC",
        "error",
        "The topic of a publish has no wildcard.",
        "Somebody published to a filter. Brokers disagree about whom that reaches.",
        "Publish to each topic by its name; wildcards are for subscriptions.",
        {"colon": "report 000, section 3.3"},
        fits.all_of(fits.has_wildcards, fits.publishes_name_topics),
    ),
    Rule(
        "P-SPEAKER",
        "error",
        "Messages of the broker come from the broker, and messages of clients from clients.",
        "Somebody sent what is not theirs to send. A receiver that does not look at the source believes it.",
        "Find out who has this address; have receivers check where messages come from.",
        _SPEAKERS,
        fits.has_speakers,
    ),
    Rule(
        "P-CLIENT-TO-CLIENT",
        "warning",
        "Clients talk to the broker and not to each other.",
        "A message went from one client to another past the broker, or there is a broker that was not recognised.",
        "If one of the two is a broker, name it with `--broker`; else look for an address written into a client.",
        _MIDDLE,
    ),
)
