"""Bytes by the word and by the block of 32: what numba has no expression for, as LLVM instructions.

None of them looks at bounds: whoever calls them knows that BLOCK bytes may be read (or written) from there on. Under
NUMBA_BOUNDSCHECK=1 the same functions go byte by byte through checked indexing, so that tests can prove it.
For little-endian machines, as all are that numba supports.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from pcap_tools.kernels.jit import CHECKED, inlined, u64

BLOCK = 32
Kernel = Callable[..., Any]
_BYTES = types.Array(types.uint8, 1, "C")
_BYTE, _WORD, _MASK = ir.IntType(8), ir.IntType(64), ir.IntType(BLOCK)
_VECTOR = ir.VectorType(_BYTE, BLOCK)
_DEL, _SPACE, _BACKSLASH = 0x7F, 0x20, 0x5C


def _pointer(context: Any, builder: Any, array: Any, index: Any) -> Any:
    data = context.make_array(_BYTES)(context, builder, value=array).data
    return builder.gep(data, [index], inbounds=True)


def _load(builder: Any, pointer: Any, kind: Any) -> Any:
    return builder.load(builder.bitcast(pointer, ir.PointerType(kind)), align=1, typ=kind)


def _splat(byte: int) -> Any:
    return ir.Constant(_VECTOR, [byte] * BLOCK)


def _mask(builder: Any, lanes: Any) -> Any:
    """One bit a byte, the first byte in the lowest."""
    return builder.zext(builder.bitcast(lanes, _MASK), _WORD)


@intrinsic
def _load64(typing: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _load(builder, _pointer(context, builder, *args), _WORD)

    return types.uint64(_BYTES, types.int64), generate


@intrinsic
def _item(typing: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(array)(context, builder, value=args[0]).data
        return context.unpack_value(builder, array.dtype, builder.gep(data, [args[1]], inbounds=True))

    return array.dtype(array, types.int64), generate


@intrinsic
def _put(typing: Any, array: Any, index: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(array)(context, builder, value=args[0]).data
        context.pack_value(builder, array.dtype, args[2], builder.gep(data, [args[1]], inbounds=True))
        return context.get_dummy_value()

    return types.void(array, types.int64, array.dtype), generate


@intrinsic
def _copy_block(typing: Any, source: Any, index: Any, target: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        block = _load(builder, _pointer(context, builder, args[0], args[1]), _VECTOR)
        pointer = _pointer(context, builder, args[2], args[3])
        builder.store(block, builder.bitcast(pointer, ir.PointerType(_VECTOR)), align=1)
        return context.get_dummy_value()

    return types.void(_BYTES, types.int64, _BYTES, types.int64), generate


@intrinsic
def _odd_in_block(typing: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        block = _load(builder, _pointer(context, builder, *args), _VECTOR)
        beyond = builder.icmp_unsigned(">=", builder.sub(block, _splat(_SPACE)), _splat(_DEL - _SPACE))
        return _mask(builder, builder.or_(beyond, builder.icmp_unsigned("==", block, _splat(_BACKSLASH))))

    return types.uint64(_BYTES, types.int64), generate


@intrinsic
def _high_in_block(typing: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        block = _load(builder, _pointer(context, builder, *args), _VECTOR)
        return _mask(builder, builder.icmp_signed("<", block, _splat(0)))

    return types.uint64(_BYTES, types.int64), generate


@intrinsic
def _equal_in_block(typing: Any, array: Any, index: Any, byte: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        block = _load(builder, _pointer(context, builder, *args[:2]), _VECTOR)
        wanted = ir.Constant(_VECTOR, ir.Undefined)
        wanted = builder.insert_element(wanted, builder.trunc(args[2], _BYTE), ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), BLOCK), [0] * BLOCK)
        wanted = builder.shuffle_vector(wanted, wanted, zeros)
        return _mask(builder, builder.icmp_unsigned("==", block, wanted))

    return types.uint64(_BYTES, types.int64, types.int64), generate


def _bits(name: str) -> Callable[..., Any]:
    def typed(typing: Any, word: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            flags = [cgutils.false_bit] if name != "llvm.bswap" else []
            function = builder.module.declare_intrinsic(name, [_WORD], _type_of(name))
            return builder.call(function, [args[0], *flags])

        result = types.uint64 if name == "llvm.bswap" else types.int64
        return result(types.uint64), generate

    found: Callable[..., Any] = intrinsic(typed)
    return found


def _type_of(name: str) -> Any:
    return ir.FunctionType(_WORD, [_WORD] if name == "llvm.bswap" else [_WORD, ir.IntType(1)])


swapped = _bits("llvm.bswap")  # the word with its bytes the other way round
zeros_below = _bits("llvm.cttz")  # zero bits below the lowest one; 64 if there is none
zeros_above = _bits("llvm.ctlz")


# -- the same, checked ------------------------------------------------------------------------------------------------


@inlined
def _not_negative(index: int) -> None:
    """numba counts a negative index from the end, as Python does."""
    if index < 0:
        raise IndexError("negative")


@inlined
def _checked_item(array: Any, index: int) -> Any:
    _not_negative(index)
    return array[index]


@inlined
def _checked_put(array: Any, index: int, value: Any) -> None:
    _not_negative(index)
    array[index] = value


@inlined
def _checked_load64(array: Any, index: int) -> Any:
    _not_negative(index)
    word = u64(0)
    for byte in range(8):
        word |= u64(array[index + byte]) << u64(8 * byte)
    return word


@inlined
def _checked_copy_block(source: Any, index: int, target: Any, place: int) -> None:
    _not_negative(min(index, place))
    for byte in range(BLOCK):
        target[place + byte] = source[index + byte]


@inlined
def _checked_odd_in_block(array: Any, index: int) -> Any:
    _not_negative(index)
    mask = u64(0)
    for byte in range(BLOCK):
        value = array[index + byte]
        if value < _SPACE or value >= _DEL or value == _BACKSLASH:
            mask |= u64(1) << u64(byte)
    return mask


@inlined
def _checked_high_in_block(array: Any, index: int) -> Any:
    _not_negative(index)
    mask = u64(0)
    for byte in range(BLOCK):
        mask |= u64(array[index + byte] >> 7) << u64(byte)
    return mask


@inlined
def _checked_equal_in_block(array: Any, index: int, wanted: int) -> Any:
    _not_negative(index)
    mask = u64(0)
    for byte in range(BLOCK):
        if array[index + byte] == wanted:
            mask |= u64(1) << u64(byte)
    return mask


# array[index] and array[index] = value, where the index is known not to be negative
item: Kernel = _checked_item if CHECKED else _item
put: Kernel = _checked_put if CHECKED else _put
# 8 bytes from (array, index) on; 32 bytes from (source, index) to (target, place)
load64: Kernel = _checked_load64 if CHECKED else _load64
copy_block: Kernel = _checked_copy_block if CHECKED else _copy_block
# one bit for each of the 32 bytes from (array, index) on: is it other than printable ASCII, or a backslash; is it 80 or
# above; is it this (byte)
odd_in_block: Kernel = _checked_odd_in_block if CHECKED else _odd_in_block
high_in_block: Kernel = _checked_high_in_block if CHECKED else _high_in_block
equal_in_block: Kernel = _checked_equal_in_block if CHECKED else _equal_in_block
