"""Fragments: the pieces of a dataset, each with its data files and deletions."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

import pyarrow as pa
import pyarrow.dataset

from .. import _not_built
from .._glaive import Dataset as _Engine
from .._plan import check_sequence
from ._refuse import not_built, refusal, refuse_arguments

__getattr__ = _not_built.missing_names(__name__)

__all__ = ["DataFile", "DeletionFile", "FragmentMetadata", "LanceFragment", "RowIdMeta", "write_fragments"]


_parse = json.loads


@dataclass
class DataFile:
    """A data file and the columns it holds."""

    path: str
    fields: List[int]
    column_indices: List[int] = field(default_factory=list)
    file_major_version: int = 0
    file_minor_version: int = 0
    file_size_bytes: Optional[int] = None
    base_id: Optional[int] = None

    def __repr__(self):
        return (
            f"DataFile(path={self.path!r}, fields={self.fields}, column_indices={self.column_indices}, "
            f"file_major_version={self.file_major_version}, file_minor_version={self.file_minor_version}, "
            f"file_size_bytes={self.file_size_bytes})"
        )

    def field_ids(self) -> List[int]:
        return list(self.fields)


@dataclass
class DeletionFile:
    """The file that lists a fragment's deleted rows."""

    read_version: int
    id: int
    file_type: str  # "array" or "bitmap"
    num_deleted_rows: int
    base_id: Optional[int] = None

    def __repr__(self):
        return f"DeletionFile(type={self.file_type!r}, num_deleted_rows={self.num_deleted_rows})"

    def path(self, fragment_id: int, base_uri: Optional[str] = None) -> str:
        suffix = "arrow" if self.file_type == "array" else "bin"
        name = f"_deletions/{fragment_id}-{self.read_version}-{self.id}.{suffix}"
        return f"{base_uri.rstrip('/')}/{name}" if base_uri else name

    def asdict(self) -> dict:
        return {
            "read_version": self.read_version,
            "id": self.id,
            "file_type": self.file_type,
            "num_deleted_rows": self.num_deleted_rows,
            "base_id": self.base_id,
        }

    def json(self) -> str:
        return json.dumps(self.asdict())

    @staticmethod
    def from_json(json: str) -> DeletionFile:
        return DeletionFile(**_parse(json))


@dataclass
class RowIdMeta:
    """A fragment's stable row ids, as the manifest stores them."""

    inline: bytes

    def asdict(self) -> dict:
        return {"Inline": list(self.inline)}

    def json(self) -> str:
        return json.dumps(self.asdict())

    @staticmethod
    def from_json(json: str) -> RowIdMeta:
        return RowIdMeta(bytes(_parse(json)["Inline"]))


@dataclass
class RowDatasetVersionMeta:
    """The versions in which a fragment's rows were made, or changed last, as the manifest stores them."""

    inline: bytes

    def asdict(self) -> dict:
        return {"inline": list(self.inline)}

    def json(self) -> str:
        return json.dumps(self.asdict())

    @staticmethod
    def from_json(json: str) -> RowDatasetVersionMeta:
        return RowDatasetVersionMeta(bytes(_parse(json)["inline"]))

    @staticmethod
    def _of(value) -> Optional[RowDatasetVersionMeta]:
        """Of bytes or a dict, or None."""
        if value is None:
            return None
        return RowDatasetVersionMeta(bytes(value["inline"] if isinstance(value, dict) else value))


@dataclass
class FragmentMetadata:
    """What the manifest says about a fragment."""

    id: int
    files: List[DataFile]
    physical_rows: int
    deletion_file: Optional[DeletionFile] = None
    row_id_meta: Optional[RowIdMeta] = None
    created_at_version_meta: Optional[RowDatasetVersionMeta] = None
    last_updated_at_version_meta: Optional[RowDatasetVersionMeta] = None

    @property
    def num_deletions(self) -> int:
        return 0 if self.deletion_file is None else self.deletion_file.num_deleted_rows

    @property
    def num_rows(self) -> int:
        return self.physical_rows - self.num_deletions

    def data_files(self) -> List[DataFile]:
        return self.files

    def to_json(self) -> dict:
        """The metadata as plain values."""
        return {
            "id": self.id,
            "files": [
                {
                    "fields": f.fields,
                    "column_indices": f.column_indices,
                    "file_major_version": f.file_major_version,
                    "file_minor_version": f.file_minor_version,
                    "file_size_bytes": f.file_size_bytes,
                    "base_id": f.base_id,
                    "path": f.path,
                }
                for f in self.files
            ],
            "physical_rows": self.physical_rows,
            "deletion_file": None if self.deletion_file is None else self.deletion_file.asdict(),
            "row_id_meta": None if self.row_id_meta is None else self.row_id_meta.asdict(),
            **{
                name: None if meta is None else meta.asdict()
                for name, meta in (
                    ("created_at_version_meta", self.created_at_version_meta),
                    ("last_updated_at_version_meta", self.last_updated_at_version_meta),
                )
            },
        }

    @staticmethod
    def from_json(json_data: str) -> FragmentMetadata:
        data = json.loads(json_data)
        deletions, row_ids = data.get("deletion_file"), data.get("row_id_meta")
        return FragmentMetadata(
            id=data["id"],
            files=[DataFile(**f) for f in data["files"]],
            physical_rows=data["physical_rows"],
            deletion_file=None if deletions is None else DeletionFile(**deletions),
            row_id_meta=None if row_ids is None else RowIdMeta(bytes(row_ids["Inline"])),
            created_at_version_meta=RowDatasetVersionMeta._of(data.get("created_at_version_meta")),
            last_updated_at_version_meta=RowDatasetVersionMeta._of(data.get("last_updated_at_version_meta")),
        )

    @staticmethod
    def _of(info: dict) -> FragmentMetadata:
        deletions = info["deletion_file"]
        if deletions is not None:
            deletions = DeletionFile(**{k: v for k, v in deletions.items() if k != "path"})
        row_ids = info["row_id_meta"]
        return FragmentMetadata(
            id=info["id"],
            files=[DataFile(**f) for f in info["files"]],
            physical_rows=info["physical_rows"],
            deletion_file=deletions,
            row_id_meta=None if row_ids is None else RowIdMeta(row_ids),
            created_at_version_meta=RowDatasetVersionMeta._of(info.get("created_at_version_meta")),
            last_updated_at_version_meta=RowDatasetVersionMeta._of(info.get("last_updated_at_version_meta")),
        )


@not_built(
    methods=["delete_rows", "open_session"],
    properties=["partition_expression"],
)
class LanceFragment(pa.dataset.Fragment):
    """One fragment of one version of a dataset."""

    def __init__(self, dataset, fragment_id: Optional[int], *, fragment=None):
        refuse_arguments("LanceFragment", {"fragment": fragment})
        self._dataset = dataset
        self._engine = dataset._ds  # the version that this fragment is of; `dataset` may move on
        info = self._engine.fragment(fragment_id)
        if info is None:
            raise ValueError(f"there is no fragment {fragment_id} in version {dataset.version} of {dataset.uri}")
        self._info = info

    @staticmethod
    def create(
        dataset_uri,
        data,
        fragment_id: Optional[int] = None,
        schema: Optional[pa.Schema] = None,
        max_rows_per_group: int = 1024,
        progress=None,
        mode: str = "append",
        *,
        data_storage_version: Optional[str] = None,
        use_legacy_format: Optional[bool] = None,
        storage_options: Optional[Dict[str, str]] = None,
        namespace_client=None,
        table_id: Optional[List[str]] = None,
        session=None,
    ) -> FragmentMetadata:
        """One fragment with all of `data`, which no version of the dataset knows yet; see `write_fragments`."""
        (written,) = write_fragments(
            data, dataset_uri, schema, mode=mode, max_rows_per_file=2**62, max_bytes_per_file=2**62,
            progress=progress, data_storage_version=data_storage_version, use_legacy_format=use_legacy_format,
            storage_options=storage_options, namespace_client=namespace_client, table_id=table_id, session=session,
        ) or (None,)  # fmt: skip
        if written is None:
            raise ValueError("a fragment needs at least one row")
        written.id = fragment_id or 0
        return written

    @staticmethod
    def create_from_file(filename: str, dataset, fragment_id: int) -> FragmentMetadata:
        """A fragment of the data file `filename`, which lies in the `data` folder of `dataset` already and which no version
        knows yet; `LanceDataset.commit` makes a version of it, with `LanceOperation.Append` for instance.

        The columns of the file are those of the dataset that have their names. SchemaMismatchError (a ValueError) for a
        column that the dataset does not have, or not of that type.
        """
        return FragmentMetadata._of(dataset._ds.fragment_of_file(filename, fragment_id))

    def __repr__(self):
        paths = [f["path"] for f in self._info["files"]]
        return f"LanceFileFragment(id={self.fragment_id}, data_files={paths}, deletion_file={self.deletion_file()!r})"

    def __reduce__(self):
        return LanceFragment, (self._dataset, self.fragment_id)

    @property
    def fragment_id(self) -> int:
        return self._info["id"]

    @property
    def metadata(self) -> FragmentMetadata:
        return FragmentMetadata._of(self._info)

    @property
    def physical_rows(self) -> int:
        """Rows in the data files, deleted ones included."""
        return self._info["physical_rows"]

    @property
    def num_deletions(self) -> int:
        return self._info["num_deletions"]

    @property
    def schema(self) -> pa.Schema:
        return self._engine.schema

    @property
    def physical_schema(self) -> pa.Schema:
        raise refusal("LanceFragment.physical_schema")

    def data_files(self) -> List[DataFile]:
        return self.metadata.files

    def deletion_file(self) -> Optional[str]:
        """Path of the deletion file below the dataset's directory."""
        file = self._info["deletion_file"]
        return None if file is None else file["path"]

    def count_rows(self, filter=None) -> int:
        if filter is None:
            return self.physical_rows - self.num_deletions
        return self.scanner(filter=filter).count_rows()

    def scanner(
        self,
        *,
        columns: Optional[Union[List[str], Dict[str, str]]] = None,
        batch_size: Optional[int] = None,
        filter=None,
        limit: Optional[int] = None,
        offset: Optional[int] = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        batch_readahead: int = 16,
        blob_handling=None,
        order_by=None,
        use_scalar_index: Optional[bool] = None,
        io_buffer_size: Optional[int] = None,
        late_materialization=None,
        include_deleted_rows: Optional[bool] = None,
        batch_size_bytes: Optional[int] = None,
        strict_batch_size: Optional[bool] = None,
    ):
        """A scan of this fragment; the arguments are those of `LanceDataset.scanner`."""
        return self._dataset.scanner(
            columns=columns,
            filter=filter,
            limit=limit,
            offset=offset,
            batch_size=batch_size,
            batch_size_bytes=batch_size_bytes,
            batch_readahead=batch_readahead,
            fragments=[self],
            with_row_id=with_row_id,
            with_row_address=with_row_address,
            io_buffer_size=io_buffer_size,
            late_materialization=late_materialization,
            blob_handling=blob_handling,
            use_scalar_index=use_scalar_index,
            include_deleted_rows=include_deleted_rows,
            strict_batch_size=strict_batch_size,
            order_by=order_by,
        )

    def to_table(
        self,
        columns: Optional[Union[List[str], Dict[str, str]]] = None,
        filter=None,
        limit: Optional[int] = None,
        offset: Optional[int] = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blob_handling=None,
        order_by=None,
        use_scalar_index: Optional[bool] = None,
        io_buffer_size: Optional[int] = None,
        late_materialization=None,
        include_deleted_rows: Optional[bool] = None,
        batch_size_bytes: Optional[int] = None,
        strict_batch_size: Optional[bool] = None,
    ) -> pa.Table:
        """The rows as a table; the arguments are those of `scanner`."""
        given = dict(locals())
        del given["self"]
        return self.scanner(**given).to_table()

    def to_batches(
        self,
        *,
        columns: Optional[Union[List[str], Dict[str, str]]] = None,
        batch_size: Optional[int] = None,
        filter=None,
        limit: Optional[int] = None,
        offset: Optional[int] = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        batch_readahead: int = 16,
        blob_handling=None,
        order_by=None,
        use_scalar_index: Optional[bool] = None,
        io_buffer_size: Optional[int] = None,
        late_materialization=None,
        include_deleted_rows: Optional[bool] = None,
        batch_size_bytes: Optional[int] = None,
        strict_batch_size: Optional[bool] = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows in batches; the arguments are those of `scanner`."""
        given = dict(locals())
        del given["self"]
        return self.scanner(**given).to_batches()

    def to_pandas(self, columns=None, filter=None, limit=None, offset=None, batch_size=None, with_row_id=False,
                  with_row_address=False, blob_mode="lazy", order_by=None, **kwargs):  # fmt: skip
        return self.scanner(
            columns=columns, filter=filter, limit=limit, offset=offset, batch_size=batch_size,
            with_row_id=with_row_id, with_row_address=with_row_address, order_by=order_by,
        ).to_pandas(blob_mode=blob_mode, **kwargs)  # fmt: skip

    def take(self, indices, columns=None) -> pa.Table:
        """Rows by their position among the fragment's live rows, in the order asked for."""
        return self._engine.take_fragment_offsets(self.fragment_id, check_sequence("indices", indices), columns, nested=True)

    def head(self, num_rows: int) -> pa.Table:
        return self.to_table(limit=num_rows)


    def delete(self, predicate: str) -> Optional[FragmentMetadata]:
        """This fragment without the rows for which `predicate` holds; None when no row would be left.

        Writes a deletion file, and makes no version: that does `LanceDataset.commit` with `LanceOperation.Delete`.
        """
        from .._changes import check_where

        rows = self.scanner(columns=["_rowaddr"], filter=check_where(predicate)).to_table()["_rowaddr"].to_numpy()
        left = self._engine.delete_in_fragment(self.fragment_id, (rows & 0xFFFFFFFF).tolist())
        return None if left is None else FragmentMetadata._of(left)

    # Columns, for a change that several machines make; `LanceDataset.commit` makes a version of what these return.

    def merge_columns(
        self,
        value_func,
        columns: Optional[List[str]] = None,
        batch_size: Optional[int] = None,
        reader_schema: Optional[pa.Schema] = None,
    ) -> Tuple[FragmentMetadata, Any]:
        """Writes new columns of this fragment; the arguments are those of `LanceDataset.add_columns`.

        Returns the fragment with its new file and the schema, for `LanceOperation.Merge`. A file that no commit takes is removed
        by a clean-up.
        """
        from ._fragment_columns import merge_columns

        return merge_columns(self, value_func, columns, batch_size, reader_schema)

    def merge(
        self, data_obj, left_on: str, right_on: Optional[str] = None, schema=None
    ) -> Tuple[FragmentMetadata, Any]:
        """Writes the columns of `data_obj` whose `right_on` equals this fragment's `left_on`, nulls elsewhere.

        Returns what `merge_columns` does. Of several rows with one key the last one counts.
        """
        from ._fragment_columns import merge

        return merge(self, data_obj, left_on, right_on, schema)

    def update_columns(
        self,
        data_obj,
        left_on: str = "_rowid",
        right_on: Optional[str] = None,
        schema=None,
        *,
        with_offsets: bool = False,
    ):
        """Writes columns anew: the values of `data_obj` where its `right_on` equals `left_on`, elsewhere those there are.

        Returns the fragment and the ids of the fields, for `LanceOperation.Update` with `update_mode="rewrite_columns"`;
        `with_offsets` also which rows got new values, for its `updated_fragment_offsets`.
        """
        from ._fragment_columns import update_columns

        return update_columns(self, data_obj, left_on, right_on, schema, with_offsets)

    def validate(self) -> None:
        """Checks that the files of this fragment are there and whole; CorruptionError (an OSError) names the first that is not."""
        from ..exceptions import CorruptionError
        from ..maintenance import verify

        files = [f["path"] for f in self._info["files"]] + [self.deletion_file() or "no deletions"]
        for problem in verify(self._dataset.uri).problems:
            if problem.kind != "foreign" and any(problem.path.endswith(path) for path in files):
                raise CorruptionError(f"{problem.path} is {problem.kind}: {problem.detail}")


def write_fragments(
    data,
    dataset_uri,
    schema: Optional[pa.Schema] = None,
    *,
    return_transaction: bool = False,
    mode: str = "append",
    max_rows_per_file: int = 1024 * 1024,
    max_rows_per_group: Optional[int] = 1024,
    max_bytes_per_file: int = 90 * 1024 * 1024 * 1024,
    data_cache_bytes: Optional[int] = None,
    max_page_bytes: Optional[int] = None,
    progress=None,
    data_storage_version: Optional[str] = None,
    use_legacy_format: Optional[bool] = None,
    storage_options: Optional[Dict[str, str]] = None,
    enable_stable_row_ids: bool = False,
    target_bases: Optional[List[str]] = None,
    target_all_bases: Optional[bool] = None,
    initial_bases=None,
    base_store_params=None,
    external_blob_mode: str = "reference",
    allow_external_blob_outside_bases: bool = False,
    namespace_client=None,
    table_id: Optional[List[str]] = None,
    session=None,
):
    """Writes data files that no version of the dataset knows yet, for writers on several machines.

    Parameters
    ----------
    data
        What `write_dataset` takes.
    dataset_uri : str, Path or LanceDataset
        Where to write. With mode "append" the columns are those of the dataset there, if there is one.
    mode : "append", "create" or "overwrite"
        What is to become of the fragments.
    return_transaction : bool
        Return a `Transaction` for `LanceDataset.commit` instead of the fragments.

    Returns a list of `FragmentMetadata`, whose ids are 0: the commit gives them. Files that are never committed are removed
    by a clean-up once they are old enough. Arguments that are not built yet raise NotImplementedError.
    """
    from ._data import to_stream
    from ._dataset import LanceDataset, _uri_text

    if mode not in ("append", "create", "overwrite"):
        raise ValueError(f"Invalid mode: {mode}")
    refuse_arguments(
        "write_fragments",
        {
            "data_cache_bytes": data_cache_bytes,
            "max_page_bytes": max_page_bytes,
            "progress": progress,
            "use_legacy_format": use_legacy_format,
            "target_bases": target_bases,
            "target_all_bases": target_all_bases,
            "initial_bases": initial_bases,
            "base_store_params": base_store_params,
            "allow_external_blob_outside_bases": allow_external_blob_outside_bases,
            "namespace_client": namespace_client,
            "table_id": table_id,
            "session": session,
        },
    )
    if external_blob_mode != "reference":
        raise refusal(f"external_blob_mode={external_blob_mode!r}")
    if not isinstance(dataset_uri, (str, Path, LanceDataset)):
        raise TypeError(f"Unknown dataset_uri type {type(dataset_uri)}")
    stream = to_stream(data, schema)
    if not hasattr(stream, "schema"):
        stream = pa.RecordBatchReader.from_stream(stream)
    arrow_schema = stream.schema
    dest = dataset_uri._ds if isinstance(dataset_uri, LanceDataset) else _uri_text(dataset_uri)
    written = _Engine.write_fragments(
        stream,
        dest,
        mode=mode,
        max_rows_per_file=max_rows_per_file,
        max_bytes_per_file=max_bytes_per_file,
        data_storage_version=data_storage_version,
    )
    fragments = [FragmentMetadata._of(info) for info in written]
    if not return_transaction:
        return fragments
    from ._operations import LanceOperation, Transaction

    if mode == "append":
        version = dest.version if isinstance(dataset_uri, LanceDataset) else _Engine.open(dest, None).version
        return Transaction(version, LanceOperation.Append(fragments))
    exists = mode == "overwrite" and (isinstance(dataset_uri, LanceDataset) or _Engine.exists(dest))
    version = _Engine.open(dest, None).version if exists and isinstance(dest, str) else dest.version if exists else 0
    return Transaction(version, LanceOperation.Overwrite(arrow_schema, fragments))
