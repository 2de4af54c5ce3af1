"""docs/reference/schemas.md: the columns of the tables, from their Arrow schemas."""

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from pcap_tools.columnar.schema import ALL_MESSAGES, MESSAGES
from scripts.reference.column_texts import TABLES, TEXTS
from scripts.reference.markdown import MADE, code, table
from spark_analysis.frames import SCHEMAS

HEAD = """\
# Tables and their columns

```sh
topicshark generate building -o run.pcap
topicshark decode run.pcap --format jsonl | head -n 3       # rows of `messages`, without Spark
```

The tables of [`analyse`](../dataframes.md), of [the Spark source](../spark.md) (`messages`) and of
[`topicshark ingest`](../ingest.md) (`messages`). Times are nanoseconds since 1970, frames are Wireshark's numbers,
endpoints are `host:port`, those of IPv6 `[host]:port`. Types are Spark's. Rows come in no order.
"""
INGESTED = """\
### messages, ingested
The Parquet that `topicshark ingest` writes has those of `messages`, and these behind them:
"""


def page() -> str:
    parts = [HEAD]
    for name, schema in SCHEMAS.items():
        parts += [f"## {name}\n{TABLES[name]}\n", _columns(name, schema)]
        if name == "messages":
            more = pa.schema([field for field in ALL_MESSAGES if field not in MESSAGES])
            parts += [INGESTED, _columns(name, more)]
    return "\n".join([*parts, MADE, ""])


def _columns(name: str, schema: pa.Schema) -> str:
    fields = from_arrow_schema(schema)
    rows = [(code(one.name), code(one.dataType.simpleString()), _text(name, one.name)) for one in fields]
    return table(("column", "type", "meaning"), rows)


def _text(name: str, column: str) -> str:
    try:
        return TEXTS.get(f"{name}.{column}") or TEXTS[column]
    except KeyError:
        raise SystemExit(f"{name}.{column} has no text: give it a line in scripts/reference/column_texts.py") from None
