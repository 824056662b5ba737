"""Branches and clones of a `LanceDataset`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple, Union

from .._glaive import NotFoundError
from .._plan import check_unsigned

if TYPE_CHECKING:
    from ._dataset import LanceDataset

Reference = Union[int, str, Tuple[Optional[str], Optional[int]]]


def check_reference(version):
    """A version number or a tag, None too; TypeError for anything else, OverflowError for a number above 64 bits."""
    return version if version is None or isinstance(version, str) else check_unsigned("version", version)


def resolve(engine, reference: Optional[Reference]):
    """The engine's dataset of a version (of this branch), a tag, or (branch, version); None: of `engine` itself."""
    if reference is None:
        return engine
    if isinstance(reference, tuple):
        branch, version = reference
        if version is not None:
            version = check_unsigned("the version of a branch", version)
        return engine.checkout_branch(branch, version)
    return engine.checkout(check_reference(reference))


class Branches:
    """Lines of versions of their own, which begin at a version of the dataset."""

    def __init__(self, ds: LanceDataset):
        self._dataset = ds

    def list(self) -> Dict[str, dict]:
        """Name -> `parent_branch` (None: main), `parent_version`, `branch_identifier`, `create_at`, `manifest_size`, `metadata`."""
        return self._dataset._ds.list_branches()

    def list_ordered(self, order: Optional[str] = None) -> List[Tuple[str, Any]]:
        """By parent version, newest first; `order="asc"` turns it."""
        if order not in (None, "asc", "desc"):
            raise ValueError(f"order must be 'asc' or 'desc', not {order!r}")
        return sorted(
            self.list().items(), key=lambda item: (item[1]["parent_version"], item[0]), reverse=order != "asc"
        )

    def delete(self, branch: str) -> None:
        """ValueError when there is none; OSError when another branch or a tag needs it."""
        try:
            self._dataset._ds.delete_branch(branch)
        except NotFoundError as error:
            raise ValueError(str(error)) from None

    def replace_metadata(self, branch: str, metadata: Dict[str, str]) -> None:
        self._dataset._ds.replace_branch_metadata(branch, dict(metadata))


class BranchMethods:
    """What `LanceDataset` has of this."""

    @property
    def branches(self) -> Branches:
        return Branches(self)

    @property
    def branch(self) -> Optional[str]:
        """The branch that this is a version of; None: the main one."""
        return self._ds.branch

    def create_branch(
        self,
        branch: str,
        reference: Optional[Reference] = None,
        storage_options: Optional[Dict[str, str]] = None,
    ) -> LanceDataset:
        """Begins a branch at this version, or at that of `reference`, and returns its first version."""
        engine = resolve(self._ds, reference).create_branch(branch)
        return self._wrap(engine, storage_options or self._storage_options, self._default_scan_options)

    def shallow_clone(
        self,
        target_path: Union[str, Path],
        reference: Reference,
        storage_options: Optional[Dict[str, str]] = None,
        **kwargs,
    ) -> LanceDataset:
        """A new dataset at `target_path` that begins with the files of a version where they are."""
        if kwargs:
            raise TypeError(f"shallow_clone got unknown arguments: {', '.join(sorted(kwargs))}")
        target = os.fspath(target_path) if isinstance(target_path, os.PathLike) else str(target_path)
        engine = resolve(self._ds, reference).shallow_clone(target)
        return self._wrap(engine, storage_options or self._storage_options, self._default_scan_options)
