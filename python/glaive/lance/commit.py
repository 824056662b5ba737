"""What a commit raises when another writer was first."""

from ..exceptions import CommitConflictError

__all__ = ["CommitConflictError"]
