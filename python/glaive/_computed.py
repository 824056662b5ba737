"""Computed columns: declared with an expression, null at first, filled by `refresh_column`.

A declaration is metadata of the field, under the keys that the LanceDB API uses. `refresh_column` evaluates the expression on all rows
and rewrites the column in those fragments where it says something else than what is stored; other columns are not touched.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, NamedTuple, Optional

from ._glaive import expression_schema, format_field_path, parse_field_path, validate_filter, volatile_function
from ._lazy import pa, pc
from ._results import AddColumnsResult, RefreshColumnJobResult, RefreshColumnResult
from ._sql import as_sql
from .exceptions import (
    CommitConflictError,
    ComputedColumnError,
    GlaiveError,
    InvalidInputError,
    InvalidTypeError,
    NotFoundError,
    RetryableCommitConflictError,
)

if TYPE_CHECKING:
    import pyarrow

_MARK = b"computed_column"
_EXPRESSION = b"computed_column.expression"
_INPUTS = b"computed_column.inputs"
_KIND = b"computed_column.kind"
_SIGNATURE = b"computed_refresh.source_signature"
_ATTEMPTS = 20


class Computed(NamedTuple):
    """A declaration: the expression, the paths of the columns that it reads, and who computes it."""

    expression: str
    inputs: List[str]
    kind: str


def computed_columns(schema: "pyarrow.Schema") -> Dict[str, Computed]:
    """The computed columns of a table, by name."""
    found = {}
    for field in schema:
        metadata = field.metadata
        if metadata and metadata.get(_MARK) == b"true":
            inputs = json.loads(metadata.get(_INPUTS, b"[]"))
            found[field.name] = Computed(metadata.get(_EXPRESSION, b"").decode(), inputs, metadata.get(_KIND, b"sql").decode())
    return found


def _top(path: str) -> str:
    try:
        return parse_field_path(path)[0]
    except ValueError:
        return path


def refuse_writes(schema: "pyarrow.Schema", names: Iterable[str]) -> None:
    """ValueError when one of the columns to write is computed."""
    computed = computed_columns(schema)
    for name in names:
        if name in computed:
            raise InvalidInputError(
                f"Invalid input, column '{name}' is computed; its values come from refresh and cannot be written directly"
            )


def refuse_change(schema: "pyarrow.Schema", path: str, *, new_type: bool = False, dropped: Iterable[str] = ()) -> None:
    """ValueError when a computed column reads the column at `path`, or when it is computed and should get another type.

    Columns that are `dropped` in the same call read nothing any more.
    """
    computed = computed_columns(schema)
    if not computed:
        return
    name = _top(path)
    for other, declared in computed.items():
        if other not in dropped and any(name == _top(path) for path in declared.inputs):
            raise InvalidInputError(f"Invalid input, column '{name}' is read by computed column '{other}'; drop that column first")
    if new_type and name in computed:
        raise InvalidInputError(f"Invalid input, column '{name}' is computed; drop it and declare it again to change its type")


# --- declaring ------------------------------------------------------------------------------------------------


def _type_of(schema: "pyarrow.Schema", expression: str):
    return expression_schema(expression, schema).field(0).type


def declare(native, computed: Any) -> AddColumnsResult:
    """Adds columns of nulls with the expressions to fill them by. RuntimeError for a name that is taken or a wrong expression."""
    schema = known = native.schema()
    fields = []
    for name, expression in computed.items():
        expression = as_sql(expression)
        if not isinstance(name, str) or not isinstance(expression, str):
            raise InvalidTypeError(f"computed columns map names to SQL text, not {name!r} to {expression!r}")
        if schema.get_field_index(name) >= 0:
            raise ComputedColumnError(f"Column '{name}' already exists")
        if "." in name:
            raise ComputedColumnError(f"a computed column is a top-level one: its name {name!r} cannot contain '.'")
        try:
            volatile = volatile_function(expression)
            if volatile:
                raise ComputedColumnError(
                    f"Invalid expression for column '{name}': '{volatile}' is not deterministic; a computed column's "
                    "expression must yield the same value every time it is evaluated"
                )
            used = validate_filter(f"({expression}) IS NULL", known, meta_columns=False)
            kind = _type_of(known, expression) if fields else native.output_schema({"value": expression}).field("value").type
        except ComputedColumnError:
            raise
        except GlaiveError as e:
            raise ComputedColumnError(f"Invalid expression for column '{name}': {e}") from None
        inputs = list(dict.fromkeys(used))
        metadata = {
            _MARK: b"true",
            _KIND: b"sql",
            _EXPRESSION: expression.encode(),
            _INPUTS: json.dumps(inputs).encode(),
            _SIGNATURE: b"{}",
        }
        fields.append(pa.field(name, kind, True, metadata))
        known = known.append(fields[-1])  # the next ones may read it
    return AddColumnsResult(native.add_null_columns(pa.schema(fields)))


# --- filling --------------------------------------------------------------------------------------------------


def _differing(new, old) -> int:
    """How many of the values differ, null being a value like others, and NaN too."""
    if new.equals(old):
        return 0
    if pa.types.is_nested(new.type):
        return sum(a != b for a, b in zip(new.to_pylist(), old.to_pylist()))
    if pa.types.is_floating(new.type):
        both_nan = pc.and_(pc.fill_null(pc.is_nan(new), False), pc.fill_null(pc.is_nan(old), False))
        equal = pc.or_(pc.fill_null(pc.equal(new, old), False), both_nan)
    else:
        equal = pc.fill_null(pc.equal(new, old), False)
    equal = pc.or_(equal, pc.and_(pc.is_null(new), pc.is_null(old)))
    return len(new) - pc.sum(equal.cast(pa.int64())).as_py()


class _Refresh:
    """One column of one version."""

    def __init__(self, engine, column: str):
        self.engine, self.column = engine, column
        self.field = engine.schema.field(column)
        self.expression = computed_columns(engine.schema)[column].expression
        self.path = format_field_path([column])

    def unfilled(self, fragment_id: int) -> int:
        """Rows whose stored value is not that of the expression."""
        reader = self.engine.scan({"new": self.expression, "old": self.path}, fragment_ids=[fragment_id])
        count = 0
        for batch in reader:
            if batch.num_rows:
                count += _differing(batch.column(0).cast(self.field.type), batch.column(1))
        return count

    def check_inputs(self) -> None:
        """ValueError when the expression reads a computed column that is not filled."""
        computed = computed_columns(self.engine.schema)
        for name in dict.fromkeys(_top(path) for path in computed[self.column].inputs):
            if name not in computed or computed[name].kind != "sql":
                continue
            missing = f"{format_field_path([name])} IS NULL AND ({computed[name].expression}) IS NOT NULL"
            count = self.engine.count_rows(missing)
            if count:
                raise InvalidInputError(
                    f"Invalid input, computed column '{self.column}' reads '{name}', which has {count} unfilled rows; "
                    f"refresh '{name}' first"
                )

    def rewrite(self, fragment_id: int):
        """(the fragment with its new file, ids of the field)."""
        from .lance.fragment import FragmentMetadata

        reader = self.engine.scan({self.column: self.expression}, fragment_ids=[fragment_id])
        schema = pa.schema([self.field.remove_metadata()])
        batches = (pa.RecordBatch.from_arrays([b.column(0).cast(self.field.type)], schema=schema) for b in reader)
        values = pa.RecordBatchReader.from_batches(schema, batches)
        info, _, _, ids = self.engine.write_fragment_columns(fragment_id, values, replace=True)
        return FragmentMetadata._of(info), ids

    def run(self) -> Optional[int]:
        """Rows filled, 0 when none had to be; commits on top of this version."""
        from .lance._operations import LanceOperation, Transaction, commit_operation

        self.check_inputs()
        counts = {i: self.unfilled(i) for i in self.engine.fragment_ids()}
        rewritten = [self.rewrite(i) for i, count in counts.items() if count]
        if rewritten:
            operation = LanceOperation.Update(
                updated_fragments=[fragment for fragment, _ in rewritten],
                fields_modified=rewritten[0][1],
                update_mode="rewrite_columns",
            )
            commit_operation(
                self.engine,
                Transaction(self.engine.version, operation),
                max_retries=_ATTEMPTS,
                stable_row_ids=False,
                v2_manifest_paths=True,
            )
        return sum(counts.values())


def _check(native, column: str) -> None:
    if not isinstance(column, str):
        raise InvalidTypeError(f"a column is named by text, not {column!r}")
    schema = native.schema()
    if schema.get_field_index(column) < 0:
        raise ComputedColumnError(f"Column '{column}' was not found")
    declared = computed_columns(schema).get(column)
    if declared is None:
        raise ComputedColumnError(f"Column '{column}' is not a computed column")
    if declared.kind != "sql":
        raise ComputedColumnError(f"Column '{column}' is computed by a function of a server ({declared.kind}), not by SQL")


def refresh(native, column: str) -> RefreshColumnResult:
    """Fills the column; RuntimeError when it is not computed."""
    _check(native, column)
    if native.is_pinned:
        raise InvalidInputError("table cannot be modified when a specific version is checked out")
    for attempt in range(_ATTEMPTS):
        engine = native.dataset().latest()
        if computed_columns(engine.schema).get(column) is None:
            raise NotFoundError(f"the computed column '{column}' is gone")
        try:
            filled = _Refresh(engine, column).run()
        except RetryableCommitConflictError:
            if attempt + 1 == _ATTEMPTS:
                raise
            continue  # others changed rows meanwhile: look again
        except CommitConflictError:
            raise
        except GlaiveError as e:
            raise ComputedColumnError(f"refresh of column '{column}': {e}") from None
        break
    native.checkout_latest()
    return RefreshColumnResult(filled, native.version())


def refresh_job(native, column: str) -> RefreshColumnJobResult:
    """`refresh`, told as the result of a job."""
    before = native.version()
    done = refresh(native, column)
    published = done.version if done.rows_filled else None
    return RefreshColumnJobResult(done.rows_filled, 0, 0, before, published)
