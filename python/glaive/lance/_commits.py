"""What commits of operations share: locks, timeouts, and several appends as one version."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from pathlib import Path
from typing import Optional

from ..exceptions import InvalidInputError, NotSupportedError
from ._operations import LanceOperation, Transaction, commit_operation


def seconds(timeout: Optional[timedelta]) -> Optional[float]:
    """None for no timeout. ValueError for one that is not positive."""
    if timeout is None:
        return None
    if not isinstance(timeout, timedelta):
        raise TypeError(f"commit_timeout must be a timedelta, got {type(timeout)}")
    if timeout < timedelta(0):
        raise ValueError("commit_timeout must not be negative")
    if not timeout:
        raise InvalidInputError("Invalid user input: commit_timeout must be non-zero; pass `None` to disable")
    return timeout.total_seconds()


def check_lock(commit_lock) -> None:
    if commit_lock is not None and not callable(commit_lock):
        raise TypeError(f"commit_lock must be a function, got {type(commit_lock)}")


def locked(commit_lock, latest: int):
    """The caller's lock around a commit that will make the version after `latest`."""
    check_lock(commit_lock)
    return contextlib.nullcontext() if commit_lock is None else commit_lock(latest + 1)


def check_place(uri, namespace_client, table_id) -> None:
    """A dataset is named by a uri, or by a namespace client and the table's id there. ValueError for anything else."""
    named = namespace_client is not None or table_id is not None
    if uri is not None and named:
        raise ValueError(
            "Cannot specify both 'uri' and 'namespace_client/table_id'. Please provide either 'uri' or both 'namespace_client' and 'table_id'."
        )
    if named and (namespace_client is None or table_id is None):
        raise ValueError("Both 'namespace_client' and 'table_id' must be provided together.")
    if uri is None and not named:
        raise ValueError("Must specify either 'uri' or both 'namespace_client' and 'table_id'.")


def merged(transactions) -> Transaction:
    """Appends as one. ValueError when there are none, NotImplementedError for other operations; nothing else of them is kept."""
    if not isinstance(transactions, (list, tuple)):
        raise TypeError(f"argument 'transactions': '{type(transactions).__name__}' object is not an instance of 'Sequence'")
    if not transactions:
        raise InvalidInputError("Invalid user input: No transactions to commit")
    fragments = []
    for transaction in transactions:
        if not isinstance(transaction, Transaction):
            raise AttributeError(f"'{type(transaction).__name__}' object has no attribute 'read_version'")
        if not isinstance(transaction.operation, LanceOperation.Append):
            raise NotSupportedError("Not supported: Only append transactions are supported in batch commits")
        fragments += transaction.operation.fragments
    read_version = min(transaction.read_version for transaction in transactions)
    return Transaction(read_version, LanceOperation.Append(fragments))


def destination(dest, dataset_class):
    """What the engine commits to."""
    if isinstance(dest, dataset_class):
        return dest._ds
    if isinstance(dest, (str, Path)):
        from ._dataset import _uri_text

        return _uri_text(dest)
    raise TypeError(f"base_uri must be str, Path, or LanceDataset, got {type(dest)}")


def commit(dest, transaction: Transaction, *, commit_lock, max_retries: int, commit_timeout, stable_row_ids: bool, v2_manifest_paths):
    """The engine's dataset after the commit. `dest`: see `destination`."""
    limit = seconds(commit_timeout)

    def run():
        return commit_operation(
            dest,
            transaction,
            max_retries=max_retries,
            stable_row_ids=stable_row_ids,
            v2_manifest_paths=v2_manifest_paths is not False,
            timeout=limit,
        )

    if commit_lock is None:
        return run()
    with locked(commit_lock, latest_version(dest)):
        return run()


def latest_version(dest) -> int:
    """0 where there is no dataset yet."""
    from .. import _glaive
    from ..exceptions import NotFoundError

    uri = dest if isinstance(dest, str) else dest.uri
    try:
        return _glaive.Dataset.open(uri, None).version
    except (NotFoundError, ValueError, FileNotFoundError):
        return 0
