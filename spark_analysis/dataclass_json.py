"""Dataclasses as JSON text and back, by the types of their fields.

>>> to_json(Damage("run.pcap", 24, "cut short"))                      # doctest: +SKIP
'{"path": "run.pcap", "offset": 24, "text": "cut short"}'
>>> from_json(Damage, _)                                              # doctest: +SKIP
Damage(path='run.pcap', offset=24, text='cut short')

The text is ASCII: a file name that is not UTF-8 survives as an escaped surrogate. Fields may be numbers, texts, None,
lists, tuples, named tuples, sets, dicts with any key, arrays of int64, other dataclasses, and `X | None`. Any other
type is a `TypeError` when it is written or read, never a value that comes back changed.
"""

from __future__ import annotations

import json
import types
from base64 import b64decode, b64encode
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

Kind = TypeVar("Kind")

_PLAIN = (str, int, float, bool, type(None))


def to_json(value: object) -> str:
    """One line of ASCII."""
    return json.dumps(_plain(value))


def from_json(kind: type[Kind], text: str) -> Kind:
    """The value of type `kind` that `to_json` wrote."""
    value: Kind = _typed(kind, json.loads(text))
    return value


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return [[_plain(key), _plain(one)] for key, one in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in value]
    if isinstance(value, np.ndarray) and value.dtype == np.int64:
        return [list(value.shape), b64encode(np.ascontiguousarray(value, "<i8").tobytes()).decode()]
    if type(value) in _PLAIN:
        return value
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _typed(kind: Any, value: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return None if value is None else _typed(_not_none(kind), value)
    if isinstance(kind, type) and is_dataclass(kind):
        return kind(**{name: _typed(hint, value[name]) for name, hint in _hints(kind).items()})
    if hasattr(kind, "_fields"):
        return kind(*(_typed(hint, one) for hint, one in zip(_hints(kind).values(), value, strict=True)))
    if origin is dict:
        return {_typed(inner[0], key): _typed(inner[1], one) for key, one in value}
    if origin is tuple and inner[-1] is not Ellipsis:
        return tuple(_typed(hint, one) for hint, one in zip(inner, value, strict=True))
    if origin in (list, tuple, set, frozenset):
        return origin(_typed(inner[0], one) for one in value)
    if origin is np.ndarray:
        shape, data = value
        return np.frombuffer(b64decode(data), "<i8").reshape(shape).astype(np.int64)
    if kind in _PLAIN:
        return value
    raise TypeError(f"{kind} has no form in JSON")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _not_none(kind: Any) -> Any:
    chosen = [one for one in get_args(kind) if one is not type(None)]
    if len(chosen) != 1:
        raise TypeError(f"{kind} could be read in more than one way")
    return chosen[0]
