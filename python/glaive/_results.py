"""What writing calls return."""

from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class AddResult:
    """`version`: the table's version after the rows were added."""

    version: int


@dataclass(frozen=True)
class DeleteResult:
    """`num_deleted_rows`, and the table's `version` afterwards."""

    num_deleted_rows: int
    version: int


@dataclass(frozen=True)
class UpdateResult:
    """`rows_updated`, and the table's `version` afterwards."""

    rows_updated: int
    version: int


@dataclass(frozen=True)
class AddColumnsResult:
    """`version`: the table's version after the columns were added."""

    version: int


@dataclass(frozen=True)
class AlterColumnsResult:
    """`version`: the table's version after the columns were altered."""

    version: int


@dataclass(frozen=True)
class DropColumnsResult:
    """`version`: the table's version after the columns were dropped."""

    version: int


@dataclass(frozen=True)
class UpdateFieldMetadataResult:
    """`version`: the table's version after the metadata were changed."""

    version: int


@dataclass(frozen=True)
class RefreshColumnResult:
    """`rows_filled`: rows that got a value, or another one; and the table's `version` afterwards."""

    rows_filled: int
    version: int


@dataclass(frozen=True)
class RefreshColumnJobResult:
    """What a job that refreshed a column did: rows, the version it read, and the one it made (None: there was nothing to do)."""

    rows_assigned: int
    rows_failed: int
    rows_remaining: int
    source_version: int
    published_version: Optional[int]


@dataclass(frozen=True)
class MergeResult:
    """What a merge did, and the table's `version` afterwards. `num_rows`: updated and inserted ones."""

    version: int
    num_updated_rows: int
    num_inserted_rows: int
    num_deleted_rows: int
    num_attempts: int
    num_rows: int
