"""The exceptions that glaive raises.

Every failure of the engine is a `GlaiveError`, and at the same time one of the built-in exceptions that users of the
LanceDB API catch for it (`ValueError` for a missing table, `RuntimeError` for a conflict, and so on).
"""

from ._glaive import (
    AlreadyExistsError,
    CancelledError,
    ClosedError,
    CommitConflictError,
    CorruptionError,
    EvaluationError,
    GlaiveError,
    InternalError,
    InvalidInputError,
    NotFoundError,
    NotSupportedError,
    QueryTimeoutError,
    ResourceExhaustedError,
    RetryableCommitConflictError,
    SchemaMismatchError,
    StoreError,
    TooManyRetriesError,
    WriterFailedError,
    WriterFencedError,
)

__all__ = [
    "AlreadyExistsError",
    "BlobFrameError",
    "BlobRangeError",
    "CancelledError",
    "ClosedError",
    "CommitConflictError",
    "CorruptionError",
    "EvaluationError",
    "GlaiveError",
    "InternalError",
    "InvalidInputError",
    "InvalidRefError",
    "InvalidTypeError",
    "JobCancelledError",
    "JobFailedError",
    "JobNotFoundError",
    "MissingColumnError",
    "MissingValueError",
    "NotFoundError",
    "NotSupportedError",
    "OutOfRangeError",
    "QueryTimeoutError",
    "RefExistsError",
    "RefNotFoundError",
    "ResourceExhaustedError",
    "RetryableCommitConflictError",
    "ScanEvaluationError",
    "SchemaMismatchError",
    "StoreError",
    "TooManyRetriesError",
    "WriterFailedError",
    "WriterFencedError",
]


class ScanEvaluationError(EvaluationError, ValueError):
    """An expression failed on the rows of a scan of `glaive.lance`, where pylance's users catch ValueError."""


class OutOfRangeError(InvalidInputError, OverflowError):
    """A number does not fit where it is used: a negative offset, a count above 2^32."""


class InvalidTypeError(InvalidInputError, TypeError):
    """An argument has a type that the call cannot take."""


class BlobFrameError(GlaiveError, RuntimeError):
    """A query with blob columns that cannot become a pandas frame: only plain scans can."""


class BlobRangeError(InvalidInputError, RuntimeError):
    """A range that ends behind the end of a blob."""


class RefNotFoundError(NotFoundError, RuntimeError):
    """There is no tag of this name, or no such version for a tag to point to."""


class RefExistsError(AlreadyExistsError, RuntimeError):
    """There is a tag of this name already."""


class InvalidRefError(InvalidInputError, RuntimeError):
    """This text cannot be the name of a tag."""


class JobFailedError(RuntimeError):
    """A job of a server ended in failure."""


class JobCancelledError(RuntimeError):
    """A job of a server was cancelled."""


class JobNotFoundError(ValueError):
    """The server has no such job."""


class MissingValueError(ValueError):
    """A required value was not given."""


class MissingColumnError(KeyError):
    """A frame lacks a column that the call needs."""

    def __init__(self, column_name):
        super().__init__(column_name)
        self.column_name = column_name

    def __str__(self):
        return f"There is no column named {self.column_name!r}"
