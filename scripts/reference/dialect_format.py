"""docs/reference/dialect-format.md: every key of a dialect file, from the models and the strings below keys."""

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from pcap_tools.dialect import spec
from pcap_tools.dialect.kinds import KINDS
from scripts.reference.docstrings import attribute_texts
from scripts.reference.markdown import MADE, code, table
from scripts.reference.toml_types import toml_type

HEAD = """\
# The format of a dialect file

```sh
topicshark dialects show colon --toml > my.toml      # a file to start from
topicshark dialects check my.toml
```

A dialect is a TOML file of these tables. [How to write one](../dialects.md), step by step; [how a datagram is then
read](../decoding.md), byte by byte. A key that is not listed is an error, told with its line and a guess at what was
meant.
"""
KEYS = """\
Which keys go with which kind:
"""
# Where a model stands in a file.
PLACES: dict[str, type[BaseModel]] = {
    "Top level": spec.DialectSpec,
    "`[fields]`: each field": spec.FieldSpec,
    "`[messages]`: each message": spec.MessageSpec,
    "`[forms.<name>]`": spec.FormSpec,
    "`[topics]`": spec.TopicsSpec,
    "`[broker]`": spec.BrokerSpec,
    "`[broker]`, a table in `forward`": spec.ForwardSpec,
    "`[client]`": spec.ClientSpec,
    "`[client]`, `resend`": spec.ResendSpec,
    "`[rules]`": spec.RulesSpec,
    "`[application]`": spec.ApplicationSpec,
    "`[application.loop]`": spec.LoopSpec,
    "`[application.loop]`, each of `replies`": spec.LoopReplySpec,
}


def page() -> str:
    texts = attribute_texts(spec)
    parts = [HEAD]
    for place, model in PLACES.items():
        parts += [f"## {place}\n{(model.__doc__ or '').replace('``', '`')}\n", _keys(model, texts)]
        if model is spec.FieldSpec:
            rows = [(code(name), kind.about, _listed(kind.keys)) for name, kind in KINDS.items()]
            parts += [KEYS, table(("kind", "value", "keys"), rows)]
    return "\n".join([*parts, MADE, ""])


def _listed(keys: frozenset[str]) -> str:
    return ", ".join(code(key) for key in spec.FieldSpec.model_fields if key in keys) or "none"


def _keys(model: type[BaseModel], texts: dict[tuple[str, str], str]) -> str:
    rows = []
    for name, field in model.model_fields.items():
        key = field.alias or name
        if (model.__name__, name) not in texts:
            raise SystemExit(f"the key {key!r} has no text: write one below it in pcap_tools/dialect/spec.py")
        rows.append((code(key), toml_type(field), _default(field), texts[model.__name__, name]))
    return table(("key", "type", "default", "meaning"), rows)


def _default(field: FieldInfo) -> str:
    value = field.default
    if value is PydanticUndefined:
        return "**required**"
    if value is None or value in ({}, []) or isinstance(value, BaseModel):
        return ""
    return code(f'"{value}"' if isinstance(value, str) else str(value).lower())
