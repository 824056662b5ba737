"""Models as schemas and rows."""

import datetime as dt
import enum
from typing import Annotated, Dict, List, Literal, Optional, Tuple, Union

import glaive
import numpy as np
import pyarrow as pa
import pydantic
import pytest
from glaive.pydantic import LanceModel, MultiVector, Vector, get_extras, model_from_row, model_to_dict, pydantic_to_schema


class Mood(str, enum.Enum):
    GOOD = "good"
    BAD = "bad"


class Level(enum.Enum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    A = "a"
    B = 2


class Port(pydantic.BaseModel):
    city: str
    depth: Optional[float] = None


def model(annotation, **field):
    default = {"f": pydantic.Field(**field)} if field else {}
    return type("Model", (LanceModel,), {"__annotations__": {"f": annotation}, "__module__": __name__, **default})


PORT = pa.struct([pa.field("city", pa.utf8(), nullable=False), pa.field("depth", pa.float64())])


@pytest.mark.parametrize(
    "annotation,type_,nullable",
    [
        (int, pa.int64(), False),
        (float, pa.float64(), False),
        (str, pa.utf8(), False),
        (bool, pa.bool_(), False),
        (bytes, pa.binary(), False),
        (dt.date, pa.date32(), False),
        (dt.datetime, pa.timestamp("us"), False),
        (Optional[int], pa.int64(), True),
        (int | None, pa.int64(), True),
        (Union[None, str], pa.utf8(), True),
        (Annotated[int, "note"], pa.int64(), False),
        (List[int], pa.list_(pa.int64()), False),
        (list[str], pa.list_(pa.utf8()), False),
        (Tuple[int, ...], pa.list_(pa.int64()), False),
        (Optional[List[float]], pa.list_(pa.float64()), True),
        (List[Optional[int]], pa.list_(pa.int64()), False),
        (List[List[int]], pa.list_(pa.list_(pa.int64())), False),
        (Port, PORT, False),
        (Optional[Port], PORT, True),
        (List[Port], pa.list_(PORT), False),
        (list[Port] | None, pa.list_(PORT), True),
        (Mood, pa.dictionary(pa.int32(), pa.utf8()), False),
        (Optional[Mood], pa.dictionary(pa.int32(), pa.utf8()), True),
        (Level, pa.int64(), False),
        (Mixed, pa.utf8(), False),
        (Vector(3), pa.list_(pa.float32(), 3), True),
        (Vector(3, pa.float16()), pa.list_(pa.float16(), 3), True),
        (Vector(3, nullable=False), pa.list_(pa.float32(), 3), False),
        (Optional[Vector(3, nullable=False)], pa.list_(pa.float32(), 3), True),
        (List[Vector(2)], pa.list_(pa.list_(pa.float32(), 2)), False),
        (MultiVector(2), pa.list_(pa.list_(pa.float32(), 2)), True),
        (MultiVector(2, pa.float64(), False), pa.list_(pa.list_(pa.float64(), 2)), False),
    ],
)
def test_types(annotation, type_, nullable):
    assert pydantic_to_schema(model(annotation)) == pa.schema([pa.field("f", type_, nullable=nullable)])


@pytest.mark.parametrize("annotation", [dict, Dict[str, int], list, List, Union[int, str], Literal["a"], dt.timedelta, set])
def test_types_without_counterpart(annotation):
    with pytest.raises(TypeError, match="unsupported type"):
        pydantic_to_schema(model(annotation))


def test_time_zone_of_a_field():
    made = model(dt.datetime, json_schema_extra={"tz": "Europe/Berlin"})
    assert made.to_arrow_schema().field("f").type == pa.timestamp("us", "Europe/Berlin")
    assert get_extras(made.model_fields["f"], "tz") == "Europe/Berlin" and get_extras(made.model_fields["f"], "other") is None


def test_vectors_have_their_length():
    made = model(Vector(2))
    for good in ([1, 2], (1.5, 2), np.array([1.0, 2.0])):
        assert list(made(f=good).f) == [float(x) for x in good]
    for bad in ([1], [1, 2, 3], ["a", "b"], None, 5):
        with pytest.raises(pydantic.ValidationError):
            made(f=bad)
    multi = model(MultiVector(2))
    assert multi(f=[[1, 2], [3, 4]]).f == [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(pydantic.ValidationError):
        multi(f=[[1]])


@pytest.mark.parametrize("dim,error", [(0, ValueError), (-3, ValueError), ("x", TypeError), (2.0, TypeError), (None, TypeError), (True, TypeError)])
def test_dimensions_are_positive_numbers(dim, error):
    for kind in (Vector, MultiVector):
        with pytest.raises(error):
            kind(dim)


def test_a_bare_vector_says_what_is_missing():
    with pytest.raises(TypeError, match="Vector must be parameterized with a dimension"):
        model(Vector)


def test_rows_of_models():
    class Ship(LanceModel):
        name: str = pydantic.Field(alias="title")
        home: Optional[Port] = None
        moods: List[Mood] = []
        level: Level = Level.LOW
        vector: Vector(2)

    ship = Ship(title="Ada", home=Port(city="Oslo"), moods=[Mood.BAD], level=Level.HIGH, vector=[1, 2])
    row = model_to_dict(ship)
    assert row == {"name": "Ada", "home": {"city": "Oslo", "depth": None}, "moods": ["bad"], "level": 2, "vector": [1.0, 2.0]}
    assert pa.Table.from_pylist([row], schema=Ship.to_arrow_schema()).to_pylist() == [row]
    assert model_from_row(Ship, row) == ship
    assert Ship.field_names() == ["name", "home", "moods", "level", "vector"]


def test_aliases_at_every_level():
    class Inner(pydantic.BaseModel):
        number: int = pydantic.Field(alias="n")

    class Outer(LanceModel):
        inner: Optional[Inner] = pydantic.Field(None, alias="in")
        many: List[Inner] = pydantic.Field(validation_alias=pydantic.AliasChoices("m", "mm"))

    made = Outer(**{"in": Inner(n=1), "m": [Inner(n=2), Inner(n=3)]})
    assert model_from_row(Outer, {"inner": {"number": 1}, "many": [{"number": 2}, {"number": 3}]}) == made
    with pytest.raises(pydantic.ValidationError, match="in"):
        model_from_row(Outer, {"inner": {"number": "x"}, "many": []})


def test_computed_fields_are_no_columns():
    class Side(pydantic.BaseModel):
        length: float

        @pydantic.computed_field
        @property
        def twice(self) -> float:
            return 2 * self.length

    class Shape(LanceModel):
        name: str
        main: Side
        others: List[Side]
        maybe: Optional[Side] = None

        @pydantic.computed_field
        @property
        def count(self) -> int:
            return 1 + len(self.others)

    shapes = [Shape(name="a", main=Side(length=1), others=[Side(length=2), Side(length=3)]), Shape(name="b", main=Side(length=4), others=[])]
    assert Shape.to_arrow_schema().names == ["name", "main", "others", "maybe"]
    for table in (glaive.connect("memory://").create_table("t", shapes), glaive.connect("memory://").create_table("t", schema=Shape)):
        if table.count_rows() == 0:
            table.add(shapes)
        assert table.to_arrow().to_pylist() == [
            {"name": "a", "main": {"length": 1}, "others": [{"length": 2}, {"length": 3}], "maybe": None},
            {"name": "b", "main": {"length": 4}, "others": [], "maybe": None},
        ]
        found = table.search().to_pydantic(Shape)
        assert found == shapes and found[0].count == 3


class Rank(enum.IntEnum):
    LOW = 1
    HIGH = 2


def test_models_of_all_kinds_of_fields_come_back_equal():
    class Detail(pydantic.BaseModel):
        x: int
        label: Optional[str] = None
        tags: List[str] = []

    class Record(LanceModel):
        model_config = pydantic.ConfigDict(populate_by_name=True)
        id: int = pydantic.Field(alias="ID")
        when: dt.datetime = pydantic.Field(json_schema_extra={"tz": "UTC"})
        local: dt.datetime
        day: Optional[dt.date] = None
        colour: Mood
        colours: List[Mood] = []
        level: Rank
        detail: Detail
        details: List[Detail]
        maybe: Optional[Detail] = None
        grid: List[List[int]] = []
        vec: Vector(2)
        half: Vector(3, pa.float16(), nullable=False)
        codes: Optional[Vector(2, pa.uint8())] = None
        many: MultiVector(2)
        raw: bytes

    def record(i, **more):
        return Record(
            ID=i,
            when=dt.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=dt.timezone.utc),
            local=dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
            colour=Mood.GOOD,
            level=Rank.HIGH,
            detail=Detail(x=i, tags=["q", ""]),
            details=[Detail(x=2), Detail(x=3, label="z")][: i % 3],
            vec=[i, 2.5],
            half=[0.5, 1, 2],
            many=[[1, 2], [3, 4]],
            raw=bytes([0, i]),
            **more,
        )

    full = dict(day=dt.date(1900, 2, 28), colours=[Mood.BAD, Mood.GOOD], maybe=Detail(x=-1), grid=[[1], [], [2, 3]], codes=[0, 255])
    records = [record(1), record(2, **full), record(3)]
    db = glaive.connect("memory://")
    table = db.create_table("t", schema=Record)
    table.add(records)
    assert table.search().to_pydantic(Record) == records
    assert db.create_table("u", records).search().to_pydantic(Record) == records
    near = table.search([2, 2.5], vector_column_name="vec").limit(1).to_pydantic(Record)
    assert near == [records[1]] and isinstance(near[0].colour, Mood) and isinstance(near[0].level, Rank)
