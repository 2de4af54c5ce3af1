"""docs/reference/lua-fields.md: what the dissector registers in the real tshark, and the severities from its source."""

import os
import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from pcap_tools.dialect import builtin_names, load_dialect
from scripts.reference.markdown import MADE, code, table

REPO = Path(__file__).resolve().parent.parent.parent
EXPERTS = REPO / "pcap_tools" / "dissector" / "lua" / "62_expert.lua"
HEAD = """\
# Fields of the Wireshark dissector

```sh
topicshark generate building -o run.pcap --fault ack-missing
topicshark dissector -o dissector.lua
tshark -X lua_script:dissector.lua -r run.pcap -2 -Y 'pubsub.meaning == "publish" && !pubsub.ack_in' \\
    -T fields -e frame.number -e pubsub.topic -e pubsub.payload_text
```

For display filters, columns and `tshark -e`. [How to use them](../wireshark.md). What only later frames can tell
(`ack_in`, `forwarded_in`, `fanout`, `no_ack`) is complete in Wireshark, and in tshark with `-2`.

## Of every dialect
"""
OF_EXPERTS = """\
## Expert information
Each has a filter of its own. The first ten are the error codes of [decoding.md](../decoding.md#error-codes), with `_`
for `-`.
"""
OF_DIALECTS = """\
## Of one dialect
Every field of a dialect has one of its own, with its bytes: `pubsub.<dialect>.<field>`. A dialect of your own that was
given to `topicshark dissector --dialect` has them too. Those of the built-in ones:
"""
TEXTS = {
    "dialect": "which protocol",
    "form": "in which of its forms",
    "message": "the dialect's name for the message",
    "meaning": "publish, subscribe, unsubscribe, ack, deliver, create, status, other",
    "topic": "the topic",
    "topic_name": "the name behind a topic number",
    "filter": "the subscribed filter",
    "retain": "whether the broker is to keep the message",
    "payload": "the payload as bytes",
    "payload_text": "the payload as text, when it is text",
    "padding": "NULs after the message",
    "error": "what is wrong: the codes of [decoding.md](../decoding.md#error-codes)",
    "error_offset": "at which byte",
    "ack_in": "of a request: the frame of its ACK",
    "ack_to": "of an ACK: the frame of its request",
    "ack_candidate": "of an ACK that may answer several requests: the frame of each",
    "ack_time": "of an ACK: the time from the request, where the match is exact or anchored",
    "ack_wait": "of an ACK to a request that was sent again: the time since its first send",
    "ack_quality": "how sure the match is: exact, anchored, resent, queued, none",
    "resend_of": "the first send of this request",
    "copy_of": "the frame of which this is only a second look (capturing on `any`)",
    "forward_of": "of a forward: the frame of the publish",
    "forward_candidate": "of a forward that may belong to several publishes: the frame of each",
    "forward_time": "of a forward: the time from the publish",
    "forwarded_in": "of a publish: the frames of its forwards, by subscriber",
    "due": "of a publish: how many forwards the subscriptions ask for",
    "fanout": "of a publish: how many forwards it has",
    "subscriber": "of a publish: who has subscribed to it at that moment",
    "missing": "of a publish: who should have got it and did not",
    "subscribed_in": "of a forward: the SUBSCRIBE that made it due; of a publish those of its subscribers",
    "stream": "the number of the conversation, in both directions",
    "exchange": "the frame that began the exchange: the same for a publish, its resends, forwards and all their ACKs",
}


def page() -> str:
    types = _registered()
    parts = [HEAD, table(("field", "type", "meaning"), _common(types)), OF_EXPERTS]
    experts = re.findall(r'^define\("(\w+)", "([^"]+)", GROUP\.(\w+), SEVERITY\.(\w+)\)', EXPERTS.read_text(), re.M)
    rows = [(code(f"pubsub.expert.{one}"), level.lower(), group.lower(), text) for one, text, group, level in experts]
    parts += [table(("filter", "severity", "group", "meaning"), rows), OF_DIALECTS]
    for name in builtin_names():
        own = sorted(field for field in types if field.startswith(f"pubsub.{name}."))
        parts += [f"### {name}\n{load_dialect(name).spec.title}.\n"]
        parts += [table(("field", "type"), [(code(field), types[field]) for field in own])]
    return "\n".join([*parts, MADE, ""])


def _common(types: dict[str, str]) -> list[tuple[str, str, str]]:
    found = {name.removeprefix("pubsub.") for name in types}
    names = {name for name in found if "." not in name} - set(builtin_names())
    if names != set(TEXTS):
        raise SystemExit(f"scripts/reference/lua_fields.py: no text, or no field: {sorted(names ^ set(TEXTS))}")
    return [(code(f"pubsub.{name}"), types[f"pubsub.{name}"], text) for name, text in TEXTS.items()]


def _registered() -> dict[str, str]:
    """By name: its type in Wireshark's words, without FT_. Nothing of the user's own plugins."""
    with TemporaryDirectory() as home:
        done = subprocess.run(
            ["tshark", "-G", "fields", "-X", f"lua_script:{REPO / 'dissector.lua'}"],
            env={**os.environ, "HOME": home, "WIRESHARK_CONFIG_DIR": home},
            capture_output=True,
            text=True,
            check=True,
        )
    lines = [line.split("\t") for line in done.stdout.splitlines() if line.startswith("F\t")]
    return {line[2]: line[3].removeprefix("FT_").lower() for line in lines if line[2].startswith("pubsub.")}
