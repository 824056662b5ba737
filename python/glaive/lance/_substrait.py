"""pyarrow's compute expressions as SQL text, by way of the Substrait message that pyarrow makes of them.

Only the parts of Substrait that conditions need are read: field references, literals, casts, lists of options and calls.
`to_sql` gives None for an expression that holds anything else.
"""

from __future__ import annotations

import datetime
import decimal
import struct
from typing import Iterator, List, Optional, Tuple

import pyarrow as pa
import pyarrow.compute  # noqa: F401 (pa.compute)

from .. import expr


class _Unknown(Exception):
    """Something that has no place in SQL text."""


def _varint(data: bytes, at: int) -> Tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7


def _fields(data: bytes) -> Iterator[Tuple[int, object]]:
    """(number, value): an int for varints, bytes for everything else."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 1:
            value, at = data[at : at + 8], at + 8
        elif kind == 2:
            size, at = _varint(data, at)
            value, at = data[at : at + size], at + size
        elif kind == 5:
            value, at = data[at : at + 4], at + 4
        else:
            raise _Unknown(f"wire type {kind}")
        yield tag >> 3, value


def _one(data: bytes, number: int, default=b""):
    found = default
    for field, value in _fields(data):
        if field == number:
            found = value
    return found


def _all(data: bytes, number: int) -> list:
    return [value for field, value in _fields(data) if field == number]


def _signed(value: int, bits: int = 64) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


_EPOCH = datetime.datetime(1970, 1, 1)


def _timestamp(micros: int) -> str:
    return f"TIMESTAMP '{_EPOCH + datetime.timedelta(microseconds=micros)}'"


def _literal(data: bytes) -> str:
    for number, value in _fields(data):
        if number == 1:
            return "true" if value else "false"
        if number in (2, 3, 5, 7):  # whole numbers, sign-extended
            return str(_signed(value))
        if number in (10, 11):
            return expr.lit(struct.unpack("<f" if number == 10 else "<d", value)[0]).to_sql()
        if number in (12, 21):
            return expr.lit(value.decode()).to_sql()
        if number in (13, 23):
            return expr.lit(bytes(value)).to_sql()
        if number in (14, 27):
            return _timestamp(_signed(value))
        if number == 16:
            return f"DATE '{datetime.date(1970, 1, 1) + datetime.timedelta(days=_signed(value))}'"
        if number == 22:
            return expr.lit(_one(value, 1).decode()).to_sql()
        if number == 24:
            digits = int.from_bytes(_one(value, 1), "little", signed=True)
            scale = _signed(_one(value, 3, 0), 32)
            return expr.lit(decimal.Decimal(digits).scaleb(-scale)).to_sql()
        if number == 29:
            return "NULL"
        if number in (34, 35):  # precision, then the value in its units
            precision = _signed(_one(value, 1, 0), 32)
            units = _signed(_one(value, 2, 0))
            micros, rest = divmod(units * 10**6, 10**precision)
            if rest:
                raise _Unknown("a timestamp with nanoseconds")
            return _timestamp(micros)
    raise _Unknown("a literal")


_COMPARISONS = {"equal": "=", "not_equal": "<>", "lt": "<", "gt": ">", "lte": "<=", "gte": ">="}
_ARITHMETIC = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "modulus": "%"}
_CALLS = {
    "starts_with": "starts_with", "ends_with": "ends_with", "contains": "contains", "lower": "lower", "upper": "upper",
    "char_length": "char_length", "abs": "abs", "coalesce": "coalesce", "sqrt": "sqrt", "floor": "floor", "ceil": "ceil",
    "utf8_lower": "lower", "utf8_upper": "upper", "utf8_length": "length", "list_value_length": "array_length",
}  # fmt: skip
_TYPES = {2: "int8", 3: "int16", 5: "int32", 7: "int64", 10: "float32", 11: "float64", 12: "string", 1: "bool", 16: "date32"}


class _Reader:
    def __init__(self, schema: pa.Schema, functions: dict):
        self.schema = schema
        self.functions = functions

    def expression(self, data: bytes) -> str:
        for number, value in _fields(data):
            if number == 1:
                return _literal(value)
            if number == 2:
                return self.reference(value)
            if number == 3:
                return self.call(value)
            if number == 8:
                options = [self.expression(o) for o in _all(value, 2)]
                return f"({self.expression(_one(value, 1))} IN ({', '.join(options)}))"
            if number == 6:
                cases = [
                    f"WHEN {self.expression(_one(clause, 1))} THEN {self.expression(_one(clause, 2))}" for clause in _all(value, 1)
                ]
                return f"(CASE {' '.join(cases)} ELSE {self.expression(_one(value, 2))} END)"
            if number == 11:
                return self.cast(value)
        raise _Unknown("an expression")

    def reference(self, data: bytes) -> str:
        segment = _one(data, 1, None)
        if segment is None or _one(data, 3, None) is not None:
            raise _Unknown("a reference")
        names: List[str] = []
        fields = self.schema
        while segment:
            step = _one(segment, 2, None)
            if step is None:
                raise _Unknown("a reference to an element")
            field = fields[_one(step, 1, 0)] if isinstance(fields, pa.Schema) else fields.field(_one(step, 1, 0))
            names.append(field.name)
            fields = field.type
            segment = _one(step, 2)
        return ".".join("`" + name.replace("`", "``") + "`" for name in names)

    def cast(self, data: bytes) -> str:
        inner = self.expression(_one(data, 2))
        for number, _ in _fields(_one(data, 1)):
            if number in _TYPES:
                return expr.Expr(inner).cast(_TYPES[number]).to_sql()
        raise _Unknown("a cast")

    def call(self, data: bytes) -> str:
        name = self.functions.get(_one(data, 1, 0), "").partition(":")[0]
        arguments = []
        for argument in _all(data, 4):
            value = _one(argument, 3, None)
            if value is not None:
                arguments.append(self.expression(value))
        if name in _COMPARISONS and len(arguments) == 2:
            return f"({arguments[0]} {_COMPARISONS[name]} {arguments[1]})"
        if name in _ARITHMETIC and len(arguments) == 2:
            return f"({arguments[0]} {_ARITHMETIC[name]} {arguments[1]})"
        if name in ("and", "or") and arguments:
            return "(" + f" {name.upper()} ".join(arguments) + ")"
        if name == "not" and len(arguments) == 1:
            return f"(NOT {arguments[0]})"
        if name in ("is_null", "is_not_null") and len(arguments) == 1:
            return f"({arguments[0]} IS {'NOT ' if name == 'is_not_null' else ''}NULL)"
        if name == "is_nan" and len(arguments) == 1:
            return f"isnan({arguments[0]})"
        if name in _CALLS and arguments:
            return f"{_CALLS[name]}({', '.join(arguments)})"
        raise _Unknown(f"function {name}")


def _message(expression, schema: pa.Schema) -> Tuple[bytes, pa.Schema]:
    """The Substrait message, and the schema that its references count in."""
    try:
        return bytes(expression.to_substrait(schema)), schema
    except pa.ArrowException:
        # Columns of types that Substrait does not know must not stand in the way of conditions on others.
        known = []
        for field in schema:
            one = pa.schema([field])
            try:
                pa.compute.field(field.name).is_valid().to_substrait(one)
            except pa.ArrowException:
                continue
            known.append(field)
        if len(known) == len(schema):
            raise
        schema = pa.schema(known)
        return bytes(expression.to_substrait(schema)), schema


def to_sql(expression: "pa.compute.Expression", schema: pa.Schema) -> Optional[str]:
    """SQL text with the meaning of `expression` over columns of `schema`; None when it cannot be written as such."""
    try:
        message, schema = _message(expression, schema)
        functions = {}
        for declaration in _all(message, 2):
            function = _one(declaration, 3)
            functions[_one(function, 2, 0)] = _one(function, 3).decode()
        references = _all(message, 3)
        if len(references) != 1:
            return None
        return _Reader(schema, functions).expression(_one(references[0], 1))
    except (_Unknown, pa.ArrowException, ValueError, IndexError, UnicodeDecodeError, struct.error, OverflowError):
        return None
