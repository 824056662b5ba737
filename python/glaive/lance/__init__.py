"""The dataset-level API that users know as `lance`: one table, its versions, fragments and files.

    import glaive.lance as lance

    ds = lance.write_dataset(pa.table({"id": [1, 2]}), "points.lance")
    ds.to_table(filter="id > 1")

The names load at first use, so importing this package alone is quick.
"""

import importlib
import sys
import types

from .. import _not_built
from .._glaive import __version__, simd_info

_HOMES = {
    "Blob": "blob",
    "BlobArray": "blob",
    "CompactedSsTable": "mem_wal",
    "MergedGeneration": "mem_wal",
    "RegionField": "mem_wal",
    "RegionSnapshot": "mem_wal",
    "RegionSpec": "mem_wal",
    "RegionWriter": "mem_wal",
    "ExecutionPlan": "mem_wal",
    "LanceOperation": "dataset",
    "LsmPointLookupPlanner": "mem_wal",
    "LsmScanner": "mem_wal",
    "LsmVectorSearchPlanner": "mem_wal",
    "MergeInsertBuilder": "dataset",
    "ShardSnapshot": "mem_wal",
    "ShardWriter": "mem_wal",
    "ShardingField": "mem_wal",
    "ShardingSpec": "mem_wal",
    "Transaction": "dataset",
    "batch_udf": "udf",
    "blob_array": "blob",
    "blob_field": "blob",
    "evaluate_sharding_spec": "mem_wal",
    "json_to_schema": "schema",
    "schema_to_json": "schema",
    "LanceDataset": "_dataset",
    "LanceScanner": "_dataset",
    "ScannerBuilder": "_dataset",
    "write_dataset": "_dataset",
    "LanceFragment": "fragment",
    "FragmentMetadata": "fragment",
    "DataFile": "fragment",
    "DeletionFile": "fragment",
    "BlobFile": "blob",
}

__all__ = ["__version__", "dataset", "simd_info", *_HOMES]


_SUBMODULES = frozenset("blob commit file fragment io mem_wal optimize pydantic query sampler schema types udf util vector".split())
_missing = _not_built.missing_names(__name__)


def dataset(
    uri=None,
    version=None,
    asof=None,
    block_size=None,
    commit_lock=None,
    index_cache_size=None,
    storage_options=None,
    default_scan_options=None,
    metadata_cache_size_bytes=None,
    index_cache_size_bytes=None,
    read_params=None,
    session=None,
    namespace_client=None,
    table_id=None,
    base_store_params=None,
):
    """Opens a dataset.

    Parameters
    ----------
    uri : str or Path
        The dataset's directory.
    version : int or str, optional
        A version number or the name of a tag; the newest version otherwise.
    asof : datetime or str, optional
        The newest version that was committed at this time or before.
    default_scan_options : dict, optional
        Defaults for the arguments of `LanceDataset.scanner`.

    The caches belong to the process, so sizes per dataset have no effect here. Locks, namespaces and sessions
    raise NotImplementedError.
    """
    from ._commits import check_place
    from ._dataset import open_dataset

    check_place(uri, namespace_client, table_id)
    return open_dataset(
        uri,
        version,
        asof,
        storage_options=storage_options,
        default_scan_options=default_scan_options,
        refused={
            "commit_lock": commit_lock,
            "read_params": read_params,
            "session": session,
            "namespace_client": namespace_client,
            "base_store_params": base_store_params,
        },
    )


def __getattr__(name):
    if name in _HOMES:
        value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    return _missing(name)


def __dir__():
    return sorted({*globals(), *__all__})


class _Package(types.ModuleType):
    """Keeps `lance.dataset` the function when the submodule of the same name is imported."""

    def __setattr__(self, name, value):
        if name == "dataset" and isinstance(value, types.ModuleType):
            return
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
