"""Full text queries as objects. They can be made, combined and turned into JSON; searching with them is not supported yet."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import Any, Dict, List, Optional, Tuple, Union

from .exceptions import InvalidInputError, InvalidTypeError


class FullTextQueryType(str, Enum):
    """Kinds of full text queries."""

    MATCH = "match"
    MATCH_PHRASE = "match_phrase"
    BOOST = "boost"
    MULTI_MATCH = "multi_match"
    BOOLEAN = "boolean"


class FullTextOperator(str, Enum):
    """Whether one or all terms must be there."""

    AND = "AND"
    OR = "OR"


class DocumentGranularity(str, Enum):
    """What one document is: a row, or an element of the row's list."""

    ROW = "row"
    LIST_ELEMENT = "list_element"


class Occur(str, Enum):
    """What a clause of a `BooleanQuery` asks of a row."""

    SHOULD = "SHOULD"
    MUST = "MUST"
    MUST_NOT = "MUST_NOT"


class FullTextQuery(ABC):
    """Base of the full text queries. `a & b`: both must match; `a | b`: either may."""

    @abstractmethod
    def query_type(self) -> FullTextQueryType:
        """Which kind it is."""

    @abstractmethod
    def _tree(self) -> Dict[str, Any]:
        """The query as JSON objects."""

    def to_json(self) -> str:
        """The query as compact JSON, tagged with its kind."""
        return json.dumps(self._tree(), separators=(",", ":"), ensure_ascii=False)

    def __and__(self, other: "FullTextQuery") -> "BooleanQuery":
        return BooleanQuery([(Occur.MUST, self), (Occur.MUST, other)])

    def __or__(self, other: "FullTextQuery") -> "BooleanQuery":
        return BooleanQuery([(Occur.SHOULD, self), (Occur.SHOULD, other)])


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise InvalidTypeError(f"{name} of a full text query must be text, not {value!r}")


def _check_query(name: str, value: Any) -> None:
    if not isinstance(value, FullTextQuery):
        raise InvalidTypeError(f"{name} must be a FullTextQuery, not {value!r}")


def _granularity(query: Any) -> Dict[str, str]:
    chosen = query.document_granularity
    return {} if chosen is None else {"document_granularity": DocumentGranularity(chosen).value}


@dataclass
class MatchQuery(FullTextQuery):
    """Rows that contain one of the terms (or, with `operator=AND`, all of them)."""

    query: str
    column: str
    _: KW_ONLY
    boost: float = 1.0
    fuzziness: int = 0
    max_expansions: int = 50
    operator: FullTextOperator = FullTextOperator.OR
    prefix_length: int = 0
    document_granularity: Optional[DocumentGranularity] = None

    def __post_init__(self) -> None:
        _check_text("query", self.query)
        _check_text("column", self.column)
        self.boost = float(self.boost)
        self.operator = FullTextOperator(self.operator)

    def query_type(self) -> FullTextQueryType:
        """MATCH."""
        return FullTextQueryType.MATCH

    def _tree(self) -> Dict[str, Any]:
        body = {
            "column": self.column,
            "terms": self.query,
            "boost": self.boost,
            "fuzziness": self.fuzziness,
            "max_expansions": self.max_expansions,
            "operator": self.operator.value.capitalize(),
            "prefix_length": self.prefix_length,
        }
        return {"match": {**body, **_granularity(self)}}


@dataclass
class PhraseQuery(FullTextQuery):
    """Rows that contain the terms in this order, at most `slop` positions off."""

    query: str
    column: str
    _: KW_ONLY
    slop: int = 0
    document_granularity: Optional[DocumentGranularity] = None

    def __post_init__(self) -> None:
        _check_text("query", self.query)
        _check_text("column", self.column)

    def query_type(self) -> FullTextQueryType:
        """MATCH_PHRASE."""
        return FullTextQueryType.MATCH_PHRASE

    def _tree(self) -> Dict[str, Any]:
        return {"phrase": {"column": self.column, "terms": self.query, "slop": self.slop, **_granularity(self)}}


@dataclass
class BoostQuery(FullTextQuery):
    """Rows that match `positive`; those that match `negative` too are ranked lower."""

    positive: FullTextQuery
    negative: FullTextQuery
    _: KW_ONLY
    negative_boost: float = 0.5

    def __post_init__(self) -> None:
        _check_query("positive", self.positive)
        _check_query("negative", self.negative)
        self.negative_boost = float(self.negative_boost)

    def query_type(self) -> FullTextQueryType:
        """BOOST."""
        return FullTextQueryType.BOOST

    def _tree(self) -> Dict[str, Any]:
        body = {"positive": self.positive._tree(), "negative": self.negative._tree(), "negative_boost": self.negative_boost}
        return {"boost": body}


@dataclass
class MultiMatchQuery(FullTextQuery):
    """Like `MatchQuery`, in several columns; `boosts` weighs each of them."""

    query: str
    columns: List[str]
    _: KW_ONLY
    boosts: Optional[List[float]] = None
    operator: FullTextOperator = FullTextOperator.OR

    def __post_init__(self) -> None:
        _check_text("query", self.query)
        self.boosts = None if self.boosts is None else [float(boost) for boost in self.boosts]
        self.operator = FullTextOperator(self.operator)

    def query_type(self) -> FullTextQueryType:
        """MULTI_MATCH."""
        return FullTextQueryType.MULTI_MATCH

    def _tree(self) -> Dict[str, Any]:
        if not self.columns:
            raise InvalidInputError("Invalid query: Cannot create MultiMatchQuery with no columns")
        boosts = [1.0] * len(self.columns) if self.boosts is None else self.boosts
        if len(boosts) != len(self.columns):
            raise InvalidInputError("Invalid query: The number of boosts must match the number of columns")
        return {"multi_match": {"query": self.query, "columns": list(self.columns), "boost": boosts}}


@dataclass
class BooleanQuery(FullTextQuery):
    """Clauses, each of which should, must or must not match."""

    queries: List[Tuple[Occur, FullTextQuery]]

    def __post_init__(self) -> None:
        self.queries = [(Occur(occur), query) for occur, query in self.queries]
        for _, query in self.queries:
            _check_query("a clause", query)

    def query_type(self) -> FullTextQueryType:
        """BOOLEAN."""
        return FullTextQueryType.BOOLEAN

    def _tree(self) -> Dict[str, Any]:
        clauses: Dict[str, List[Any]] = {"should": [], "must": [], "must_not": []}
        for occur, query in self.queries:
            clauses[occur.value.lower()].append(query._tree())
        return {"boolean": clauses}


@dataclass
class FullTextSearchQuery:
    """The full text part of a `Query`: a text or a query object, and the columns it is for."""

    _: KW_ONLY
    columns: Optional[List[str]] = None
    query: Union[str, FullTextQuery]
