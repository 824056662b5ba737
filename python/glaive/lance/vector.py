"""Tables of vectors out of Python values."""

from __future__ import annotations

from typing import Dict, List, Optional, Union

import numpy as np
import pyarrow as pa

from .. import _not_built

__all__ = ["vec_to_table"]

__getattr__ = _not_built.missing_names(__name__)


def vec_to_table(
    data: Union[Dict, List, np.ndarray],
    names: Optional[Union[str, List[str]]] = None,
    ndim: Optional[int] = None,
    check_ndim: bool = True,
) -> pa.Table:
    """A table whose column "vector" holds one float32 vector per element of `data`.

    Parameters
    ----------
    data : dict, list or np.ndarray
        Vectors, or rows that are vectors; the keys of a dict become a column "id" before it.
    names : str or list of str, optional
        Other names for the columns: two of them for a dict, one otherwise.
    ndim : int, optional
        Values per vector, known from the first one otherwise.
    check_ndim : bool
        Whether to look at the length of each vector and raise ValueError for one that differs.
    """
    if isinstance(data, dict):
        names = ["id", "vector"] if names is None else names
        if not isinstance(names, (list, tuple)) or len(names) != 2:
            raise ValueError(f"If data is a dict, names must be a list of 2 strings, not {names!r}")
        columns = [pa.array(list(data.keys())), _vectors(list(data.values()), ndim, check_ndim)]
        return pa.Table.from_arrays(columns, names=list(names))
    if not isinstance(data, (list, np.ndarray)):
        raise NotImplementedError(f"data must be a dict, a list or an ndarray, not {type(data).__name__}")
    if names is None:
        names = ["vector"]
    elif isinstance(names, str):
        names = [names]
    if len(names) != 1:
        raise ValueError(f"names takes one name for the vectors, not {names!r}")
    return pa.Table.from_arrays([_vectors(data, ndim, check_ndim)], names=list(names))


def _vectors(data, ndim: Optional[int], check: bool) -> pa.FixedSizeListArray:
    if ndim is None:
        ndim = len(data[0])
    if check:
        for vector in data:
            if len(vector) != ndim:
                raise ValueError(f"Expected {ndim} dimensions but got {len(vector)} for {vector}")
    if not isinstance(data, np.ndarray):
        data = np.concatenate([np.asarray(vector, dtype=np.float32).ravel() for vector in data])
    return pa.FixedSizeListArray.from_arrays(pa.array(data.astype(np.float32).ravel(), pa.float32()), ndim)
