"""The counters of a broker for Prometheus, over HTTP."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pcap_tools.errors import UsageError
from reference_broker.messages.sending import Endpoint

TIMEOUT_S = 5.0
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(counters: Mapping[str, int], gauges: Mapping[str, float]) -> str:
    """The text format of Prometheus.

    >>> print(exposition({"PUBLISH": 3}, {"subscriptions": 2}), end="")
    # TYPE topicshark_broker_events_total counter
    topicshark_broker_events_total{event="PUBLISH"} 3
    # TYPE topicshark_broker_subscriptions gauge
    topicshark_broker_subscriptions 2
    """
    lines = ["# TYPE topicshark_broker_events_total counter"]
    for name, number in sorted(counters.items()):
        label = name.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        lines.append(f'topicshark_broker_events_total{{event="{label}"}} {number}')
    for name, value in gauges.items():
        metric = f"topicshark_broker_{re.sub('[^a-z0-9]+', '_', name)}"
        lines += [f"# TYPE {metric} gauge", f"{metric} {value:g}"]
    return "\n".join(lines) + "\n"


class MetricsServer:
    """Answers GET /metrics from a thread of its own until ``close``."""

    def __init__(self, at: Endpoint, text: Callable[[], str]) -> None:
        class Handler(BaseHTTPRequestHandler):
            timeout = TIMEOUT_S

            def do_GET(self) -> None:
                if self.path != "/metrics":
                    self.send_error(404)
                    return
                body = text().encode()
                self.send_response(200)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing: requests are no news."""

        try:
            self._server = ThreadingHTTPServer(at, Handler)
        except (OSError, OverflowError) as error:
            raise UsageError(f"cannot serve metrics on {at[0]} port {at[1]}: {error}") from error
        self._server.daemon_threads = True
        self.address: Endpoint = self._server.server_address[:2]  # type: ignore[assignment]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
