"""Upkeep: checking and repairing tables on disk, and the upkeep that runs by itself.

While a process writes to a table of a `glaive.connect` database, a thread of low priority folds small fragments and removes
versions older than 7 days, unless they are tagged or open. `connect(..., storage_options={"auto_maintenance": "false"})` or the
environment variable GLAIVE_AUTO_MAINTENANCE=0 switches that off; `auto_maintenance_retention` ("2h 30m") or
GLAIVE_AUTO_MAINTENANCE_RETENTION sets the age.

    report = glaive.maintenance.verify("db/table.lance")
    for problem in report.problems:
        print(problem)
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Union

from . import _glaive
from ._progress import report as _report

__all__ = ["VerifyProblem", "VerifyReport", "verify", "wait_for_maintenance"]


@dataclass(frozen=True)
class VerifyProblem:
    """What is wrong with one file.

    `kind`: "missing", "truncated", "corrupt", or "foreign" for a file that no version names, which does no harm. `version` is the
    newest that names it, `fragment_id` the fragment of the newest version.
    """

    kind: str
    path: str
    detail: str
    version: Optional[int]
    fragment_id: Optional[int]


@dataclass(frozen=True)
class VerifyReport:
    """What a check found.

    `lost`: fragment -> live rows that cannot be read. `undeleted`: fragment -> deleted rows of which it is not known any more which
    they are. `repaired_version`: the version that a repair made.
    """

    version: int
    files_checked: int
    rows_checked: int
    sound: bool
    problems: List[VerifyProblem] = field(default_factory=list)
    lost: Dict[int, int] = field(default_factory=dict)
    undeleted: Dict[int, int] = field(default_factory=dict)
    repaired_version: Optional[int] = None


def verify(
    uri: Union[str, os.PathLike], *, decode: bool = False, repair: bool = False, progress: Any = None
) -> VerifyReport:
    """Checks that the files of a table are what its versions say.

    Args:
        uri: the directory of the table, `DATABASE/NAME.lance`.
        decode: read every value of the newest version, not only sizes, footers and page tables.
        repair: commit a new version without the fragments that have lost files. A fragment whose deletion file is lost keeps all its
            rows, the deleted ones too. Older versions stay as they are.
        progress: True for a bar, a callable that gets a dict, or an object like a tqdm bar; it counts fragments.

    Raises FileNotFoundError or ValueError when there is no table.
    """
    callback = _report(progress, None, lambda fragments: 0)
    found = _glaive.verify(os.fspath(uri), decode=decode, repair=repair, progress=callback)
    if callback is not None:
        callback.finish()
    found["problems"] = [VerifyProblem(*problem) for problem in found["problems"]]
    return VerifyReport(**found)


def wait_for_maintenance(seconds: float = 60.0) -> bool:
    """Waits until the upkeep that runs by itself has nothing to do now. False when it still has after that time."""
    return _glaive.wait_for_maintenance(seconds)
