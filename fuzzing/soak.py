"""Everything at once, for an hour: a broker, clients with faults, a rotating capture, a stream of it into Parquet, and
the checker on each file as it is finished.

python -m fuzzing.soak --minutes 60 --output soak       (needs the right to capture on the loopback interface)

At the end three counts must be one: what the broker says that it received and sent, what the captures hold, and what
the stream has written. The checker must find the rules broken that the clients broke, as often as they did, and no
other; and nothing may have grown without end. Traffic stays on a loopback address of its own. Leaves ``soak.json`` and
``soak.png``.
"""

from __future__ import annotations

import argparse
import getpass
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from matplotlib.figure import Figure

from pcap_tools.codec.detect import wanted_dialects
from spark_analysis.check import check


@dataclass(frozen=True)
class Usage:
    """Of one process and its children: megabytes in memory, and open files."""

    megabytes: float = 0.0
    files: int = 0


def usage(pid: int) -> Usage:
    """Nothing, if it has ended."""
    family = _family(pid)
    return Usage(sum(map(_megabytes, family)), sum(map(_files, family)))


def _family(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        try:
            children = Path(f"/proc/{one}/task/{one}/children").read_text().split()
        except OSError:
            continue
        found += [int(child) for child in children]
    return found


def _megabytes(pid: int) -> float:
    """What is its own: pages that children share with it are not counted twice."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def _files(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # told apart by colour-blind eyes, too


def draw(samples: list[dict[str, Any]], place: Path) -> None:
    """A sample has ``minute``, ``megabytes`` and ``files`` by process, ``behind``, and ``findings`` by rule."""
    figure = Figure(figsize=(9, 9), layout="constrained")
    axes = figure.subplots(4, 1, sharex=True)
    _lines(axes[0], samples, "megabytes", "memory, MB")
    _lines(axes[1], samples, "files", "open files")
    minutes = [sample["minute"] for sample in samples]
    axes[2].plot(minutes, [sample["behind"] for sample in samples], color=COLOURS[0])
    axes[2].set_ylabel("messages captured,\nnot yet in the table")
    _lines(axes[3], samples, "findings", "findings")
    axes[3].set_xlabel("minutes")
    figure.savefig(place)


def _lines(axes: Any, samples: list[dict[str, Any]], what: str, label: str) -> None:
    minutes = [sample["minute"] for sample in samples]
    names = sorted({name for sample in samples for name in sample[what]})
    for colour, name in zip(COLOURS, names, strict=False):
        axes.plot(minutes, [sample[what].get(name, 0) for sample in samples], label=name, color=colour)
    if names:
        axes.legend(loc="upper left", fontsize="small")
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)


DIALECT, HOST, PORT = "colon", "127.77.0.1", 50000
FAULTS = {"wire-incomplete": 0.02, "wire-unknown-type": 0.02}
SAMPLE_S = 5.0
PATIENCE_S = 180  # for the stream to catch up at the end
MOST_GROWTH = 1.5  # of memory, from the second quarter to the last
Process = subprocess.Popen[str]


@dataclass
class Tally:
    """What came of it so far."""

    runs: int = 0
    faulty: Counter[str] = field(default_factory=Counter)  # rules that the clients broke on purpose
    findings: Counter[str] = field(default_factory=Counter)  # W rules found broken, file by file: for the picture
    messages: int = 0  # in captures that are finished
    checked: set[str] = field(default_factory=set)
    samples: list[dict[str, Any]] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)


class Soak:
    """The folder, its processes, and the loop that watches them."""

    def __init__(self, folder: Path, minutes: float, rotate_s: int, rate: float) -> None:
        self.folder, self.seconds, self.rotate_s, self.rate = folder, minutes * 60, rotate_s, rate
        self.captures, self.table, self.state = folder / "captures", folder / "messages", folder / "state"
        for place in (self.captures, self.table, self.state):
            place.mkdir(parents=True)
        self.tally, self.started = Tally(), time.monotonic()
        self.is_over = threading.Event()
        self.processes: dict[str, Process] = {}
        self.rows: dict[str, int] = {}  # by file of the table

    def run(self) -> Tally:
        self._start()
        clients = threading.Thread(target=self._play)
        clients.start()
        try:
            while time.monotonic() - self.started < self.seconds and self._all_alive():
                time.sleep(SAMPLE_S)
                self._look()
        finally:
            self.is_over.set()
            clients.join()
            self._end()
        return self.tally

    def _start(self) -> None:
        topicshark = [sys.executable, "-m", "topicshark.main"]
        broker = ["broker", "--dialect", DIALECT, "--host", HOST, "--quiet", "--state", str(self.state / "broker")]
        self._spawn("broker", [*topicshark, *broker])
        name = str(self.captures / "run-%Y%m%d-%H%M%S.pcap")
        rotate = ["-G", str(self.rotate_s), "-w", name, "-U", "-n", "-B", "32768", "-Z", getpass.getuser()]
        self._spawn("tcpdump", ["tcpdump", "-i", "lo", *rotate, f"udp and host {HOST}"])
        settle = str(2 * self.rotate_s)
        places = [str(self.captures), str(self.table), str(self.state)]
        self._spawn("stream", [sys.executable, "-m", "fuzzing.soak_stream", *places, DIALECT, settle])
        while self._all_alive() and not (self.state / "following").exists():
            time.sleep(0.5)
        if self.tally.trouble:
            self._kill()
            raise SystemExit("\n".join(self.tally.trouble))
        self.started = time.monotonic()

    def _spawn(self, name: str, command: list[str]) -> None:
        log = (self.state / f"{name}.log").open("w")
        self.processes[name] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, text=True)

    def _log(self, name: str) -> str:
        return (self.state / f"{name}.log").read_text()

    def _all_alive(self) -> bool:
        for name, process in self.processes.items():
            if process.poll() is not None:
                self.tally.trouble.append(f"{name} ended with {process.returncode}: {self._log(name)[-500:]}")
        return not self.tally.trouble

    def _play(self) -> None:
        """In a thread: clients come, publish and go, again and again."""
        faults = [f"--fault={name}={rate}" for name, rate in FAULTS.items()]
        while not self.is_over.is_set():
            truth, capture = self.state / "truth.json", self.state / "clients.pcap"
            options = ["--to", f"{HOST}:{PORT}", "--rate", str(self.rate), "--seed", str(self.tally.runs + 1)]
            files = ["-o", str(capture), "--truth", str(truth)]
            command = [sys.executable, "-m", "topicshark.main", "generate", "building", *options, *faults, *files]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                self.tally.trouble.append(f"clients ended with {done.returncode}: {done.stderr[-500:]}")
                return
            self.tally.faulty.update(fault["rule"] for fault in json.loads(truth.read_text())["faults"])
            self.tally.runs += 1

    # -- while it runs ------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        self._check(sorted(self.captures.iterdir())[:-1])  # into the last tcpdump is writing
        measured = {name: usage(process.pid) for name, process in self.processes.items()}
        self.tally.samples.append(
            {
                "minute": round((time.monotonic() - self.started) / 60, 3),
                "megabytes": {name: round(one.megabytes, 1) for name, one in measured.items()},
                "files": {name: one.files for name, one in measured.items()},
                "behind": self.tally.messages - self._rows(),
                "findings": dict(self.tally.findings),
            }
        )

    def _check(self, finished: list[Path]) -> None:
        for capture in finished:
            if capture.name in self.tally.checked or capture.stat().st_size <= 24:
                continue
            self.tally.checked.add(capture.name)
            messages, broken = self._checked([capture])
            self.tally.messages += messages
            self.tally.findings.update({rule: count for rule, count in broken.items() if rule.startswith("W-")})

    def _checked(self, captures: list[Path]) -> tuple[int, dict[str, int]]:
        """Messages, and the rules at error level that are broken."""
        result = check(
            [str(capture) for capture in captures],
            dialects=wanted_dialects([DIALECT]),
            brokers=[HOST],
            engine="local",
            merge=True,
            summaries=False,
        )
        self.tally.trouble += [*result.partial, *result.failed.values()]
        rules = [rule for session in result.sessions for rule in session.rules]
        broken = {rule.id: rule.failed for rule in rules if rule.failed and rule.level == "error"}
        return sum(session.datagrams for session in result.sessions), broken

    def _rows(self) -> int:
        """Of the files that Spark has committed."""
        for log in (self.table / "_spark_metadata").glob("[0-9]*"):
            for name in re.findall(r'"path":"[^"]*/([^"/]+)"', log.read_text()):
                if name not in self.rows:
                    self.rows[name] = pq.read_metadata(self.table / name).num_rows
        return sum(self.rows.values())

    # -- the end ------------------------------------------------------------------------------------------------------

    def _end(self) -> None:
        for name, ends_by in (("tcpdump", signal.SIGINT), ("broker", signal.SIGTERM)):
            self.processes[name].send_signal(ends_by)
            self.processes[name].wait(30)
        self._check(sorted(self.captures.iterdir()))
        patience = time.monotonic() + PATIENCE_S
        while self._rows() < self.tally.messages and time.monotonic() < patience:
            if self.processes["stream"].poll() is not None:
                break
            time.sleep(1)
        (self.state / "stop").touch()
        try:
            self.processes["stream"].wait(60)
        except subprocess.TimeoutExpired:
            self._kill()
        if self.processes["stream"].returncode:
            self.tally.trouble.append(f"stream: {self._log('stream')[-500:]}")
        self._judge()

    def _kill(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()

    def _judge(self) -> None:
        said = Counter({name: int(count) for name, count in re.findall(r"^  (\w+) (\d+)$", self._log("broker"), re.M)})
        counts = {
            "the broker received and sent": said["received"] + said["sent"],
            "the captures hold": self.tally.messages,
            "the stream has written": self._rows(),
        }
        print(", ".join(f"{name} {count:,}" for name, count in counts.items()))
        if len(set(counts.values())) != 1 or not self.tally.messages:
            self.tally.trouble.append(f"something was lost: {counts}; {self._log('tcpdump')[-300:]}")
        # One file alone does not show who subscribed in those before it: the verdict is on all of them as one session.
        held, broken = self._checked([place for place in sorted(self.captures.iterdir()) if place.stat().st_size > 24])
        if held != self.tally.messages or broken != dict(self.tally.faulty):
            self.tally.trouble.append(f"broken on purpose {dict(self.tally.faulty)}, found {broken} in {held}")
        self.tally.trouble += growth(self.tally.samples)


def growth(samples: list[dict[str, Any]]) -> list[str]:
    """What needs much more memory or files in the last quarter than in the second; too few samples tell nothing."""
    quarter = len(samples) // 4
    if quarter < 5:
        return []
    found = []
    for what in ("megabytes", "files"):
        for name in samples[-1][what]:
            early, late = (
                sorted(sample[what][name] for sample in some)[quarter // 2]
                for some in (samples[quarter : 2 * quarter], samples[-quarter:])
            )
            if late > early * MOST_GROWTH + 10:
                found.append(f"{name}: {what} grew from {early} to {late}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--output", type=Path, default=Path("soak"))
    parser.add_argument("--rotate", type=int, default=10, metavar="SECONDS")
    parser.add_argument("--rate", type=float, default=100, help="requests a second")
    given = parser.parse_args()
    if given.output.exists():
        parser.error(f"{given.output} is there already")
    tally = Soak(given.output, given.minutes, given.rotate, given.rate).run()
    (given.output / "soak.json").write_text(json.dumps(tally.samples, indent=1) + "\n")
    draw(tally.samples, given.output / "soak.png")
    print(f"{tally.runs} runs of clients, {len(tally.checked)} captures; rules broken on purpose {dict(tally.faulty)},")
    print(f"found broken {dict(tally.findings)}; {given.output / 'soak.png'}")
    if tally.trouble:
        sys.exit("\n".join(dict.fromkeys(tally.trouble)))


if __name__ == "__main__":
    main()
