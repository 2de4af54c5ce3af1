"""docs/reference/schemas.md: the columns of the tables, from their Arrow schemas."""

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from pcap_tools.columnar.decode.schema import ALL_COLUMNS, COLUMNS, SCHEMA_VERSION
from pcap_tools.dialect import builtin_names, load_dialect
from scripts.reference.column_texts import TABLES, TEXTS
from scripts.reference.markdown import MADE, code, table
from spark_analysis.checker.rulebook.needs import needs_of
from spark_analysis.dataframes import SCHEMAS
from spark_analysis.tables.schemas import DETAIL

HEAD = """\
# Tables and their columns

```sh
topicshark generate building -o run.pcap
topicshark decode run.pcap --format jsonl | head -n 3       # rows of `messages`, without Spark
```

These are the tables of [`analyse`](../dataframes.md). [The Spark source](../spark.md) and
[`topicshark ingest`](../ingest.md) give `messages`.

- A datagram is known by `session`, `capture` and `frame` in every table. A column of the type
  `struct<capture:string,frame:bigint>` names another datagram of the same session.
- Times are nanoseconds since 1970; frames are Wireshark's numbers.
- Endpoints are `host:port`, or `[host]:port` for IPv6.
- Types are Spark's. Rows come in no order.
"""


def page() -> str:
    parts = [HEAD]
    for name, schema in SCHEMAS.items():
        parts += [f"## {name}\n{TABLES[name]}\n", _columns(name, schema)]
        if name == "messages":
            parts.append(_about_messages())
        if name == "findings":
            text = "Which of them a finding has depends on its rule; the others are null.\n"
            parts += [f"### findings: detail\n{text}", _columns("detail", pa.schema(list(DETAIL)))]
    return "\n".join([*parts, MADE, ""])


def _about_messages() -> str:
    more = [code(name) for name in ALL_COLUMNS if name not in COLUMNS]
    needs = needs_of(load_dialect(name) for name in builtin_names())
    needed = [code(name) for name in ALL_COLUMNS if name not in COLUMNS and name in needs]
    return (
        f"The Spark source gives {', '.join(more[:-1])} and {more[-1]} only if its option `columns` names them. Rules "
        f"need {', '.join(needed[:-1])} and {needed[-1]}.\n\nThis is version {SCHEMA_VERSION} of the columns. The "
        "Parquet that `topicshark ingest` writes carries the version in each file and in its manifest.\n"
    )


def _columns(name: str, schema: pa.Schema) -> str:
    fields = from_arrow_schema(schema)
    rows = [(code(one.name), code(one.dataType.simpleString()), _text(name, one.name)) for one in fields]
    return table(("column", "type", "meaning"), rows)


def _text(name: str, column: str) -> str:
    try:
        return TEXTS.get(f"{name}.{column}") or TEXTS[column]
    except KeyError:
        raise SystemExit(f"{name}.{column} has no text: give it a line in scripts/reference/column_texts.py") from None
