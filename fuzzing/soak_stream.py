"""The stream of a soak, a process of its own: follows a folder of rotating captures into Parquet until told to stop.

python -m fuzzing.soak_stream CAPTURES OUTPUT STATE DIALECT SETTLE

Makes the file STATE/following when it does, and ends when the file STATE/stop appears.
"""

import sys
import time
from pathlib import Path

from spark_analysis.engine.spark_session import open_session


def follow(captures: str, output: str, state: str, dialect: str, settle: str) -> None:
    stop = Path(state) / "stop"
    with open_session("local[1]") as spark:
        messages = spark.readStream.format("topicshark").option("dialect", dialect).option("settle", settle)
        writer = (
            messages.load(captures).writeStream.format("parquet").option("checkpointLocation", f"{state}/checkpoint")
        )
        query = writer.trigger(processingTime="2 seconds").start(output)
        (Path(state) / "following").touch()
        while query.isActive and not stop.exists():
            time.sleep(0.5)
        if (error := query.exception()) is not None:
            sys.exit(f"the stream failed: {error}")
        query.stop()


if __name__ == "__main__":
    follow(*sys.argv[1:6])
