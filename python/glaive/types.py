"""Names for the choices that arguments of this package have."""

from typing import Any, Dict, List, Literal, Tuple, Union

QueryType = Literal["vector", "fts", "hybrid", "auto"]
DistanceType = Literal["l2", "cosine", "dot"]
DistanceTypeWithHamming = Literal["l2", "cosine", "dot", "hamming"]
OnBadVectorsType = Literal["error", "drop", "fill", "null"]
AddMode = Literal["append", "overwrite"]
CreateMode = Literal["create", "overwrite"]
BlobMode = Literal["lazy", "bytes", "descriptions"]
QueryProjection = Union[List[str], List[Tuple[str, str]], Dict[str, Any]]
