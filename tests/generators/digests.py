"""The digest of a scenario's capture and truth; ``python -m tests.generators.digests`` prints all of them."""

from __future__ import annotations

import io
import json
from hashlib import sha256

from generators.capture.capture_point import write
from generators.generate import GeneratorOptions, generate
from generators.scenarios import SCENARIOS


def digest(options: GeneratorOptions) -> str:
    """Of the bytes of the capture file, and then of the truth as JSON."""
    made = generate(options)
    capture = io.BytesIO()
    write(made.capture, capture)
    truth = json.dumps(made.truth(), sort_keys=True)
    return sha256(capture.getvalue() + truth.encode()).hexdigest()


def digests() -> dict[str, str]:
    """Of each scenario as it is if nothing is chosen."""
    return {name: digest(GeneratorOptions(name)) for name in SCENARIOS}


if __name__ == "__main__":
    print(json.dumps(digests()))
