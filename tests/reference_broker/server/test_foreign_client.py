"""MQTT-SN with a client that nobody here wrote: `mqttsn` of PyPI, a descendant of the client of Eclipse's RSMB.

It knows no REGACK of its own, fails on a QoS 0 message of a registered topic, and cannot pack UNSUBSCRIBE and
DISCONNECT; so it gets filters without wildcards, QoS 1 on long topics, and QoS 0 and -1 on two-letter ones.
"""

import json
import subprocess
import sys

import pytest

from tests.conftest import REPO
from tests.waiting import PATIENCE_S

pytest.importorskip("mqttsn", reason="the foreign MQTT-SN client is not installed")

DIALOGUE = """
import json, sys
from mqttsn.client import Callback, Client, publish
from tests.waiting import wait_until

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

def wait_for(messages, number):
    wait_until(lambda: len(messages) == number, f"{number} messages are there")

writer, reader = connected(b"writer"), connected(b"reader")
topic = writer.register(b"home/room/light")
writer.publish(topic, "first", qos=1, retained=True)
wait_for(writer.callback.done, 1)
subscribed = reader.subscribe("home/room/light", qos=1)
wait_for(reader.callback.arrived, 1)
for number in range(4):
    writer.publish(topic, f"message {number}", qos=1)
    wait_for(reader.callback.arrived, 2 + number)
reader.subscribe("ab")
writer.publish("ab", "short", qos=0)
wait_for(reader.callback.arrived, 6)
publish("ab", "unconnected", port=int(sys.argv[1]), host="127.0.0.1")
wait_for(reader.callback.arrived, 7)
wait_for(writer.callback.done, 5)
told = {"subscribed": subscribed, "arrived": reader.callback.arrived, "acked": len(writer.callback.done)}
print(json.dumps(told), file=sys.stderr)
"""


@pytest.mark.net
def test_a_foreign_client_publishes_and_subscribes() -> None:
    command = [sys.executable, "-m", "topicshark.main", "broker", "--dialect", "mqttsn", "--port", "0", "--quiet"]
    with subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as broker:
        try:
            assert broker.stdout is not None
            port = broker.stdout.readline().split()[4]
            dialogue = [sys.executable, "-c", DIALOGUE, port]
            done = subprocess.run(
                dialogue, cwd=REPO, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=True
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
