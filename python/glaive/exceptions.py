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
    "ComputedColumnError",
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
    "NamespaceExistsError",
    "NamespaceNotEmptyError",
    "NamespaceNotFoundError",
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
    "TableNotFoundError",
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


class ComputedColumnError(InvalidInputError, RuntimeError):
    """A computed column that cannot be declared or filled."""


class RefNotFoundError(NotFoundError, RuntimeError):
    """There is no tag of this name, or no such version for a tag to point to."""


class RefExistsError(AlreadyExistsError, RuntimeError):
    """There is a tag of this name already."""


class InvalidRefError(InvalidInputError, RuntimeError):
    """This text cannot be the name of a tag."""


class NamespaceExistsError(AlreadyExistsError, RuntimeError):
    """There is a namespace of this path already."""


class NamespaceNotFoundError(NotFoundError, RuntimeError):
    """There is no namespace of this path."""


class TableNotFoundError(NotFoundError):
    """There is no such table in a namespace. Also lance_namespace's error of this name, where that package is installed."""


class NamespaceNotEmptyError(InvalidInputError, RuntimeError):
    """A namespace that holds tables or namespaces cannot be dropped. Also lance_namespace's error, where it is installed."""


def namespace_error(name: str, message: str) -> Exception:
    """TableNotFoundError or NamespaceNotEmptyError, as one that code written for the package lance_namespace catches too."""
    ours = globals()[name]
    try:
        from lance_namespace import errors
    except ImportError:
        return ours(message)
    theirs = getattr(errors, name, None)
    if theirs is None:
        return ours(message)
    return type(name, (ours, theirs), {"__module__": __name__, "__init__": lambda self, text: Exception.__init__(self, text)})(message)


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
