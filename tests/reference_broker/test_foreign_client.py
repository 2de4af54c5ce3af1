"""MQTT-SN with a client that nobody here wrote: `mqttsn` of PyPI, a descendant of the client of Eclipse's RSMB.

It knows no REGACK of its own, fails on a QoS 0 message of a registered topic, and cannot pack UNSUBSCRIBE and
DISCONNECT; so it gets filters without wildcards, QoS 1 on long topics, and QoS 0 and -1 on two-letter ones.
"""

import json
import subprocess
import sys

import pytest

from tests.conftest import REPO

pytest.importorskip("mqttsn", reason="the foreign MQTT-SN client is not installed")

DIALOGUE = """
import json, sys, time
from mqttsn.client import Callback, Client, publish

class Listener(Callback):
    def __init__(self):
        super().__init__()
        self.arrived, self.done = [], []
    def message_arrived(self, topic_name, payload, qos, retained, msgid):
        self.arrived.append([bytes(payload).decode(), qos, bool(retained)])
        return True
    def published(self, msgid):
        self.done.append(msgid)

def connected(name):
    client = Client(name, host="127.0.0.1", port=int(sys.argv[1]))
    client.register_callback(Listener())
    client.connect()
    return client

def wait(until):
    end = time.monotonic() + 5
    while not until() and time.monotonic() < end:
        time.sleep(0.02)

writer, reader = connected(b"writer"), connected(b"reader")
topic = writer.register(b"home/room/light")
writer.publish(topic, "first", qos=1, retained=True)
wait(lambda: len(writer.callback.done) == 1)
subscribed = reader.subscribe("home/room/light", qos=1)
wait(lambda: len(reader.callback.arrived) == 1)
for number in range(4):
    writer.publish(topic, f"message {number}", qos=1)
    wait(lambda: len(reader.callback.arrived) == 2 + number)
reader.subscribe("ab")
writer.publish("ab", "short", qos=0)
wait(lambda: len(reader.callback.arrived) == 6)
publish("ab", "unconnected", port=int(sys.argv[1]), host="127.0.0.1")
wait(lambda: len(reader.callback.arrived) == 7)
told = {"subscribed": subscribed, "arrived": reader.callback.arrived, "acked": len(writer.callback.done)}
print(json.dumps(told), file=sys.stderr)
"""


@pytest.mark.net
def test_a_foreign_client_publishes_and_subscribes() -> None:
    command = [sys.executable, "-m", "cli.main", "broker", "--dialect", "mqttsn", "--port", "0", "--quiet"]
    with subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as broker:
        try:
            assert broker.stdout is not None
            port = broker.stdout.readline().split()[4]
            done = subprocess.run(
                [sys.executable, "-c", DIALOGUE, port], capture_output=True, text=True, timeout=60, check=True
            )
        finally:
            broker.terminate()
    told = json.loads(done.stderr.strip().splitlines()[-1])
    assert told["subscribed"][0] == 0
    assert told["arrived"] == [
        ["first", 1, True],
        *[[f"message {number}", 1, False] for number in range(4)],
        ["short", 0, False],
        ["unconnected", 0, False],
    ]
    assert told["acked"] == 5
