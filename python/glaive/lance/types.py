"""What may be given as data, under the name that programs import it from."""

from typing import Any, Dict, Iterable, Union

import pyarrow as pa
import pyarrow.dataset

ReaderLike = Union[
    "pa.Table", "pa.RecordBatch", "pa.RecordBatchReader", "pa.dataset.Dataset", "pa.dataset.Scanner", Dict[str, Any], Iterable[Any]
]

__all__ = ["ReaderLike"]
