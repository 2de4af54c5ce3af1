"""Every field of datagrams that were decoded already: each is walked once more, by the layout that was found for it."""

from __future__ import annotations

from typing import Any

from pcap_tools.columnar.decode.decode_kernel import _I32, _I64, _PROGRAM, _U8, OTHER
from pcap_tools.columnar.decode.marks import PLACE_BITS
from pcap_tools.columnar.decode.tables import FormColumn, LayoutColumn, Op, Program, StepColumn
from pcap_tools.columnar.decode.walk_kernel import FieldColumn, walk
from pcap_tools.kernels.jit import i64, kernel
from pcap_tools.kernels.words import item, put

_FIRST, _COUNT, _LAST_GUARD, _FORM = (int(LayoutColumn.FIRST) + index for index in range(4))
_NUL_PADDING, _FORM_SIZE = int(FormColumn.NUL_PADDING), len(FormColumn)
_OP, _DIGITS, _STEP = int(StepColumn.OP), int(Op.DIGITS), len(StepColumn)
_VALUE, _VALUE_END, _FIELD = int(FieldColumn.VALUE), int(FieldColumn.VALUE_END), len(FieldColumn)
_LAYOUT = len(LayoutColumn)


@kernel(_PROGRAM, _U8, _I64, _I32, _I32, _I32, _I64, _I64, _I32)
def walk_fields(
    program: Program,
    buffer: Any,
    starts: Any,
    sizes: Any,
    rows: Any,
    outcomes: Any,
    fields: Any,
    values: Any,
    read: Any,
) -> None:
    """How many fields each row has, and step after step their values for all rows: numbers, and marks of texts.

    ``rows`` and ``outcomes`` are those of ``Results``; ``fields`` has room for one datagram.
    """
    count = rows.size
    for kept in range(count):
        row, outcome = i64(item(rows, kept)), i64(item(outcomes, kept))
        base, size = item(starts, row), i64(item(sizes, row))
        found = i64(0)
        if outcome != OTHER and size > 0:
            layout = (outcome if outcome >= 0 else -1 - outcome) * _LAYOUT
            first = item(program.layouts, layout + _FIRST)
            _, _, _, _, found = walk(
                program.steps, program.pool, program.literals, first, item(program.layouts, layout + _COUNT),
                item(program.layouts, layout + _LAST_GUARD), buffer, base, size,
                item(program.forms, item(program.layouts, layout + _FORM) * _FORM_SIZE + _NUL_PADDING) != 0, fields,
            )  # fmt: skip
            for index in range(found):
                value = item(fields, index * _FIELD + _VALUE)
                if item(program.steps, first + index * _STEP + _OP) > _DIGITS:
                    value = (item(fields, index * _FIELD + _VALUE_END) - value) << PLACE_BITS | (base + value)
                put(values, index * count + kept, value)
        put(read, kept, found)
