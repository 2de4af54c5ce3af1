"""What a key of a dialect file may hold, in words, from its annotation."""

import types
from typing import Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Interval, Le, MaxLen
from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from pcap_tools.dialect import spec

PLAIN = {str: "text", int: "whole number", float: "number", bool: "`true` or `false`", Any: "anything"}
# Validators that take more than the type says.
WIDER = {spec._port_range: 'port, list of ports, or `"first-last"`', spec._one_or_many: "{0}, or a list of them"}


def toml_type(field: FieldInfo) -> str:
    return _told(field.annotation, tuple(field.metadata))


def _told(annotation: Any, metadata: tuple[Any, ...] = ()) -> str:
    wider = [WIDER[one.func] for one in metadata if isinstance(one, BeforeValidator) and one.func in WIDER]
    if wider:
        return wider[0].format(_told(get_args(annotation)[0]))
    if hasattr(annotation, "__metadata__"):
        return _told(annotation.__origin__, tuple(annotation.__metadata__))
    return _bare(annotation) + _bounds(metadata)


def _bare(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " ".join(f'`"{one}"`' for one in inner)
    if origin in (Union, types.UnionType):
        return " or ".join(_told(one) for one in inner if one is not type(None))
    if origin is list:
        return f"list of {_told(inner[0])}"
    if origin is dict:
        keys = _told(inner[0]) if get_origin(inner[0]) is Literal else "name"
        return f"table: {keys} → {_told(inner[1])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "table"
    return PLAIN[annotation]


def _bounds(metadata: tuple[Any, ...]) -> str:
    told = []
    for one in _constraints(metadata):
        if isinstance(one, Ge | Interval) and one.ge is not None:
            told.append(f"from {one.ge}")
        if isinstance(one, Gt | Interval) and one.gt is not None:
            told.append(f"above {one.gt}")
        if isinstance(one, Le | Interval) and one.le is not None:
            told.append(f"to {one.le}")
        if isinstance(one, MaxLen):
            told.append(f"up to {one.max_length} characters")
    return " " + " ".join(told) if told else ""


def _constraints(metadata: tuple[Any, ...]) -> list[Any]:
    """Those of a ``Field`` inside an annotation too."""
    return [part for one in metadata for part in (one.metadata if isinstance(one, FieldInfo) else [one])]
