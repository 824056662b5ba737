"""Descriptions of indexes, given to `create_index` as `config`. Building them is not supported yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Literal, Optional

from ._full_text import DocumentGranularity

__all__ = [
    "BTree",
    "Bitmap",
    "FTS",
    "Fm",
    "HnswFlat",
    "HnswPq",
    "HnswSq",
    "IvfFlat",
    "IvfHnswFlat",
    "IvfHnswPq",
    "IvfHnswSq",
    "IvfPq",
    "IvfRq",
    "IvfSq",
    "LabelList",
]

_Metric = Literal["l2", "cosine", "dot"]
_MetricOrHamming = Literal["l2", "cosine", "dot", "hamming"]


@dataclass
class BTree:
    """Sorted values with page statistics: for columns with many different values; equality and ranges."""


@dataclass
class Bitmap:
    """A set of rows for each value: for columns with few different values."""


@dataclass
class LabelList:
    """A set of rows for each element: for lists, `array_has` and its kin."""


@dataclass
class Fm:
    """An FM-index over text or bytes: for substrings."""


@dataclass
class FTS:
    """An inverted index: for full text search. `memory_limit` is in MiB."""

    with_position: bool = False
    base_tokenizer: str = "simple"
    language: str = "English"
    max_token_length: Optional[int] = 40
    lower_case: bool = True
    stem: bool = True
    remove_stop_words: bool = True
    ascii_folding: bool = True
    ngram_min_length: int = 3
    ngram_max_length: int = 3
    prefix_only: bool = False
    block_size: int = 128
    custom_stop_words: Optional[List[str]] = None
    memory_limit: Optional[int] = None
    num_workers: Optional[int] = None
    document_granularity: DocumentGranularity = DocumentGranularity.ROW


@dataclass
class HnswPq:
    """A graph over product-quantized vectors in each partition."""

    distance_type: _Metric = "l2"
    num_partitions: Optional[int] = None
    num_sub_vectors: Optional[int] = None
    num_bits: int = 8
    max_iterations: int = 50
    sample_rate: int = 256
    m: int = 20
    ef_construction: int = 300
    target_partition_size: Optional[int] = None
    accelerator: Optional[str] = None


@dataclass
class HnswSq:
    """A graph over scalar-quantized vectors in each partition."""

    distance_type: _Metric = "l2"
    num_partitions: Optional[int] = None
    max_iterations: int = 50
    sample_rate: int = 256
    m: int = 20
    ef_construction: int = 300
    target_partition_size: Optional[int] = None
    accelerator: Optional[str] = None


@dataclass
class HnswFlat:
    """A graph over whole vectors in each partition."""

    distance_type: _Metric = "l2"
    num_partitions: Optional[int] = None
    max_iterations: int = 50
    sample_rate: int = 256
    m: int = 20
    ef_construction: int = 300
    target_partition_size: Optional[int] = None


@dataclass
class IvfFlat:
    """Partitions of whole vectors."""

    distance_type: _MetricOrHamming = "l2"
    num_partitions: Optional[int] = None
    max_iterations: int = 50
    sample_rate: int = 256
    target_partition_size: Optional[int] = None
    accelerator: Optional[str] = None


@dataclass
class IvfSq:
    """Partitions of scalar-quantized vectors."""

    distance_type: _Metric = "l2"
    num_partitions: Optional[int] = None
    max_iterations: int = 50
    sample_rate: int = 256
    target_partition_size: Optional[int] = None
    accelerator: Optional[str] = None


@dataclass
class IvfPq:
    """Partitions of product-quantized vectors."""

    distance_type: _Metric = "l2"
    num_partitions: Optional[int] = None
    num_sub_vectors: Optional[int] = None
    num_bits: int = 8
    max_iterations: int = 50
    sample_rate: int = 256
    target_partition_size: Optional[int] = None
    accelerator: Optional[str] = None


@dataclass
class IvfRq:
    """Partitions of vectors in one or a few bits per value after a rotation."""

    distance_type: _Metric = "l2"
    num_partitions: Optional[int] = None
    num_bits: int = 1
    max_iterations: int = 50
    sample_rate: int = 256
    target_partition_size: Optional[int] = None
    accelerator: Optional[str] = None


IvfHnswPq = HnswPq
IvfHnswSq = HnswSq
IvfHnswFlat = HnswFlat
