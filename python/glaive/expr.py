"""Conditions and values built with Python's operators instead of SQL text.

    from glaive.expr import col, lit

    adults = (col("age") >= 18) & (col("status") == "active")
    table.search().where(adults).select({"score": col("raw") * 1.5}).to_list()

An `Expr` stands wherever a filter or an expression may be SQL text; `to_sql` shows the text that it means.
"""

from __future__ import annotations

import math
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Iterable, Optional, Union

import pyarrow as pa

__all__ = ["Expr", "col", "lit", "func"]

# Names that a column may have only in back-quotes.
_RESERVED = frozenset(
    """
    abort abs absolute action add admin after aggregate all allocate alter always analyze and anti any apply archive
    are array as asc asensitive assert asymmetric at atomic attach authorization auto autoincrement auto_increment avg
    avro backward base64 before begin begin_frame begin_partition between bigint binary blob block boolean both bucket
    by bytes cache call called cardinality cascade cascaded case cast catalog catch ceil ceiling century chain change
    channel char character characters charset char_length check class clear clob clone close cluster collate collation
    collect collection column columns comment commit committed compression condition connect connection constraint
    contains continue convert copy corr corresponding count create cross csv cube cume_dist current current_date
    current_row current_time current_timestamp current_user cursor cycle data database databases date datetime day
    days deallocate dec decade decimal declare default deferrable deferred define definer delayed delete delimited
    delimiter dense_rank deref desc describe detach deterministic directory disable discard disconnect distinct
    distribute div do domain double dow doy drop dry duplicate dynamic each element elements else empty enable
    encoding encryption end engine enum epoch equals error escape escaped estimate event every evolve except exception
    exchange exclude exclusive exec execute exists exp explain explicit export extended extension external extract
    fail false family fetch fields file files fill filter final first first_value flatten float floor flush following
    for force foreign format formatted forward free freeze from full fulltext function functions fusion general
    generate generated geography get global grant granted group grouping groups hash having header heap history hold
    hour hours identified identity if ignore ilike immediate immutable in include increment index indicator inherit
    initially inner inout input insensitive insert install instead int integer intersect intersection interval into
    invoker is isodow isolation isoyear join json jsonfile json_table key keys kill lag language large last last_value
    lateral lead leading least left level like limit lines list listen ln load local localtime localtimestamp location
    lock locked logs long lower low_priority macro managed map match matched matches max maxvalue measures mediumint
    merge message metadata method metric microsecond microseconds millennium millisecond min minus minute minutes
    minvalue mod mode modifies modify module month months name names national natural nchar nested network new next no
    none normalize not nothing notify nowait nth_value ntile null nullable nullif nulls number numeric object offset
    old on only open operator optimize option options or order ordinality out outer output over overlaps overwrite
    owned owner parallel parameter parquet part partition partitions password path pattern per percent percent_rank
    period pivot placing plan policy portion position power precedes preceding precision preferred prepare preserve
    primary prior privileges procedure profile program public purge quarter queries query quote range rank raw read
    real recursive ref references refresh regexp region relative release remove rename repair replace reset resource
    restrict result return returning returns revoke right role rollback rollup root row rows row_number rule run safe
    sample savepoint schema schemas scope scroll search second seconds secret select semi sensitive separator sequence
    serde serializable server session set sets settings share show similar size skip slow smallint snapshot some sort
    sorted source spatial specific sql sqrt stage start starts statement statistics status step storage stored string
    strict struct substr substring subtype sum super symmetric sync system table tables tablesample tag target task
    temp temporary terminated text then ties time timestamp timestamptz timezone tinyint to top trailing transaction
    translate treat trigger trim true truncate try type unbounded undefined union unique unknown unlock unlogged
    unnest unpivot unsigned until update upper usage use user using uuid vacuum valid validate value values varbinary
    varchar variable variables version view views virtual volatile warehouse week weeks when where while window with
    within without work write xml xor year years zone url items
    """.split()
)

_TYPES = {
    "bool": pa.bool_(),
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float16": pa.float16(),
    "float32": pa.float32(),
    "float": pa.float32(),
    "float64": pa.float64(),
    "double": pa.float64(),
    "string": pa.string(),
    "utf8": pa.string(),
    "str": pa.string(),
    "large_string": pa.large_utf8(),
    "large_utf8": pa.large_utf8(),
    "date32": pa.date32(),
    "date": pa.date32(),
    "date64": pa.date64(),
}

_SIMPLE_TYPE_NAMES = {
    pa.bool_(): "Boolean",
    pa.int8(): "Int8",
    pa.int16(): "Int16",
    pa.int32(): "Int32",
    pa.int64(): "Int64",
    pa.uint8(): "UInt8",
    pa.uint16(): "UInt16",
    pa.uint32(): "UInt32",
    pa.uint64(): "UInt64",
    pa.float16(): "Float16",
    pa.float32(): "Float32",
    pa.float64(): "Float64",
    pa.string(): "Utf8",
    pa.large_string(): "LargeUtf8",
    pa.string_view(): "Utf8View",
    pa.binary(): "Binary",
    pa.large_binary(): "LargeBinary",
    pa.date32(): "Date32",
    pa.date64(): "Date64",
}

# Every function that SQL text may call takes part; these are checked when the call is built.
_FUNCTIONS = frozenset(
    """
    array_compact array_dims array_distance array_normalize array_remove_n array_resize arrays_zip arrow_metadata
    cast_to_type cosine_distance dot_product inner_product json_extract_with_type list_compact list_dims list_distance
    list_normalize list_remove_n list_resize list_zip make_map map map_entries rand to_local_time to_time try_cast_to_type
    version with_metadata
    md5 sha224 sha256 sha384 sha512 digest encode decode uuid to_char date_format
    abs acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh cot degrees exp factorial floor gcd isnan iszero lcm ln
    log log10 log2 nanvl pi pow power radians random round signum sin sinh sqrt tan tanh trunc coalesce nullif nvl ifnull
    nvl2 greatest least arrow_cast arrow_try_cast arrow_typeof named_struct row struct get_field overlay ascii bit_length
    btrim char_length character_length concat concat_ws chr ends_with find_in_set initcap instr left length levenshtein
    lower lpad ltrim octet_length position repeat replace reverse right rpad rtrim split_part starts_with strpos substr
    substr_index substring substring_index to_hex translate trim upper contains contains_tokens regexp_like regexp_match
    regexp_replace regexp_count regexp_instr current_date current_time current_timestamp date_bin date_part date_trunc
    datepart datetrunc from_unixtime make_date make_time now to_date to_timestamp to_timestamp_micros to_timestamp_millis
    to_timestamp_nanos to_timestamp_seconds to_unixtime today array_any_value array_append array_cat array_concat
    array_contains array_distinct array_element array_empty array_except array_extract array_has array_has_all
    array_has_any array_indexof array_intersect array_join array_length array_max array_min array_ndims array_pop_back
    array_pop_front array_position array_positions array_prepend array_push_back array_push_front array_remove
    array_remove_all array_repeat array_replace array_replace_all array_replace_n array_reverse array_slice array_sort
    array_to_string array_union arrays_overlap cardinality empty flatten generate_series list_any_value list_append
    list_cat list_concat list_contains list_distinct list_element list_empty list_except list_extract list_has
    list_has_all list_has_any list_indexof list_intersect list_join list_length list_max list_ndims list_pop_back
    list_pop_front list_position list_positions list_prepend list_push_back list_push_front list_remove list_remove_all
    list_repeat list_replace list_replace_all list_replace_n list_reverse list_slice list_sort list_to_string list_union
    make_array make_list range string_to_array string_to_list map_extract map_keys map_values element_at json_extract
    json_exists json_get json_get_string json_get_int json_get_float json_get_bool json_array_contains json_array_length
    is_valid
    """.split()
)


def _type_name(type_: pa.DataType) -> str:
    """The name that arrow_cast knows the type by."""
    name = _SIMPLE_TYPE_NAMES.get(type_)
    if name is not None:
        return name
    unit = {"us": "\u00b5s"}
    if pa.types.is_timestamp(type_):
        zone = "" if type_.tz is None else f', "{type_.tz}"'
        return f"Timestamp({unit.get(type_.unit, type_.unit)}{zone})"
    if pa.types.is_time(type_) or pa.types.is_duration(type_):
        kind = "Duration" if pa.types.is_duration(type_) else f"Time{type_.bit_width}"
        return f"{kind}({unit.get(type_.unit, type_.unit)})"
    if pa.types.is_decimal128(type_) or pa.types.is_decimal256(type_):
        return f"Decimal{type_.bit_width}({type_.precision}, {type_.scale})"
    if pa.types.is_fixed_size_binary(type_):
        return f"FixedSizeBinary({type_.byte_width})"
    if pa.types.is_list(type_):
        return f"List({_type_name(type_.value_type)})"
    if pa.types.is_large_list(type_):
        return f"LargeList({_type_name(type_.value_type)})"
    if pa.types.is_fixed_size_list(type_):
        return f"FixedSizeList({type_.list_size} x {_type_name(type_.value_type)})"
    raise ValueError(f"cast to {type_} is not supported")


def _quote(name: str) -> str:
    plain = all(c == "_" or (c.isascii() and (c.islower() or c.isdigit())) for c in name) and not name[:1].isdigit()
    if plain and name not in _RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def _float_text(value: float) -> str:
    if math.isnan(value) or math.isinf(value):
        text = "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"
        return f"arrow_cast('{text}', 'Float64')"
    text = format(Decimal(repr(value)), "f")
    return text if "." in text else text + ".0"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _literal(value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if -(2**63) <= value < 2**63 else _float_text(float(value))
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            value = value.astimezone(timezone.utc).replace(tzinfo=None)
        return f"CAST('{value.isoformat(sep=' ')}' AS TIMESTAMP)"
    if isinstance(value, date):
        return f"CAST('{value.isoformat()}' AS DATE)"
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError(f"failed to parse decimal digits: {value} is no number")
        text = format(value, "f")
        digits = text.lstrip("-").replace(".", "").lstrip("0")
        scale = len(text.partition(".")[2])
        return f"arrow_cast('{text}', 'Decimal128({max(len(digits), scale, 1)}, {scale})')"
    raise TypeError(f"Unsupported literal type: {type(value).__name__}")


ExprLike = Union["Expr", bool, int, float, str, bytes, date, datetime, Decimal]


def _coerce(value: ExprLike) -> Expr:
    return value if isinstance(value, Expr) else lit(value)


class Expr:
    """A condition or a value. Make one with `col`, `lit` and `func`, then combine it with operators and methods.

    Comparisons give an `Expr`, never a boolean; that is why it has no hash. Plain Python values on the other side of an
    operator are literals.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, sql: str, *, column_path: Optional[str] = None) -> None:
        self._sql_text = sql
        self._column_path = column_path

    def _binary(self, operator: str, other: ExprLike) -> Expr:
        return Expr(f"({self._sql_text} {operator} {_coerce(other)._sql_text})")

    def _reflected(self, operator: str, other: ExprLike) -> Expr:
        return _coerce(other)._binary(operator, self)

    def __eq__(self, other: ExprLike) -> Expr:  # type: ignore[override]
        return self._binary("=", other)

    def __ne__(self, other: ExprLike) -> Expr:  # type: ignore[override]
        return self._binary("<>", other)

    def __lt__(self, other: ExprLike) -> Expr:
        return self._binary("<", other)

    def __le__(self, other: ExprLike) -> Expr:
        return self._binary("<=", other)

    def __gt__(self, other: ExprLike) -> Expr:
        return self._binary(">", other)

    def __ge__(self, other: ExprLike) -> Expr:
        return self._binary(">=", other)

    def __and__(self, other: ExprLike) -> Expr:
        return self._binary("AND", other)

    def __rand__(self, other: ExprLike) -> Expr:
        return self._reflected("AND", other)

    def __or__(self, other: ExprLike) -> Expr:
        return self._binary("OR", other)

    def __ror__(self, other: ExprLike) -> Expr:
        return self._reflected("OR", other)

    def __invert__(self) -> Expr:
        return Expr(f"NOT {self._sql_text}")

    def __add__(self, other: ExprLike) -> Expr:
        return self._binary("+", other)

    def __radd__(self, other: ExprLike) -> Expr:
        return self._reflected("+", other)

    def __sub__(self, other: ExprLike) -> Expr:
        return self._binary("-", other)

    def __rsub__(self, other: ExprLike) -> Expr:
        return self._reflected("-", other)

    def __mul__(self, other: ExprLike) -> Expr:
        return self._binary("*", other)

    def __rmul__(self, other: ExprLike) -> Expr:
        return self._reflected("*", other)

    def __truediv__(self, other: ExprLike) -> Expr:
        return self._binary("/", other)

    def __rtruediv__(self, other: ExprLike) -> Expr:
        return self._reflected("/", other)

    def lower(self) -> Expr:
        """The text in lower case."""
        return Expr(f"lower({self._sql_text})")

    def upper(self) -> Expr:
        """The text in upper case."""
        return Expr(f"upper({self._sql_text})")

    def contains(self, substr: ExprLike) -> Expr:
        """Whether `substr` occurs in the text."""
        return Expr(f"contains({self._sql_text}, {_coerce(substr)._sql_text})")

    def isin(self, values: Iterable[ExprLike]) -> Expr:
        """Whether the value is one of `values`; never, when there are none."""
        items = [_coerce(value)._sql_text for value in values]
        return Expr(f"{self._sql_text} IN ({', '.join(items)})" if items else "false")

    def cast(self, data_type: Union[str, pa.DataType]) -> Expr:
        """The value as `data_type`: a pyarrow type, or a name like "int32", "float64", "string", "date32".

        ValueError for names that are no type.
        """
        if isinstance(data_type, str):
            if data_type not in _TYPES:
                raise ValueError(f"unsupported data type: '{data_type}'. Supported: {', '.join(_TYPES)}")
            data_type = _TYPES[data_type]
        if not isinstance(data_type, pa.DataType):
            raise TypeError(f"data_type must be a pyarrow type or its name, not {type(data_type).__name__}")
        return Expr(f"arrow_cast({self._sql_text}, {_text(_type_name(data_type))})")

    def eq(self, other: ExprLike) -> Expr:
        """`self == other`"""
        return self.__eq__(other)

    def ne(self, other: ExprLike) -> Expr:
        """`self != other`"""
        return self.__ne__(other)

    def lt(self, other: ExprLike) -> Expr:
        """`self < other`"""
        return self.__lt__(other)

    def lte(self, other: ExprLike) -> Expr:
        """`self <= other`"""
        return self.__le__(other)

    def gt(self, other: ExprLike) -> Expr:
        """`self > other`"""
        return self.__gt__(other)

    def gte(self, other: ExprLike) -> Expr:
        """`self >= other`"""
        return self.__ge__(other)

    def and_(self, other: ExprLike) -> Expr:
        """`self & other`"""
        return self.__and__(other)

    def or_(self, other: ExprLike) -> Expr:
        """`self | other`"""
        return self.__or__(other)

    def _column_name(self) -> Optional[str]:
        """The column's name when this is nothing but a column."""
        return self._column_path

    def to_sql(self) -> str:
        """The SQL text that this means."""
        return self._sql_text

    def __repr__(self) -> str:
        return f"Expr({self._sql_text})"


def col(name: str) -> Expr:
    """The column `name`. Dots are part of the name; for members of structs write SQL or `func("get_field", ...)`."""
    if not isinstance(name, str):
        raise TypeError(f"a column is named by a str, not {type(name).__name__}")
    return Expr(_quote(name), column_path=name)


def lit(value: Union[bool, int, float, str, bytes, date, datetime, Decimal]) -> Expr:
    """A constant. TypeError for other types than those of the annotation.

    Datetimes without a zone are wall-clock times; those with one are compared as instants.
    """
    return Expr(_literal(value))


def func(name: str, *args: ExprLike) -> Expr:
    """A call of the SQL function `name`. ValueError when there is none of this name."""
    if name not in _FUNCTIONS:
        raise ValueError(f"unknown function: {name}")
    return Expr(f"{name}({', '.join(_coerce(arg)._sql_text for arg in args)})")
