"""A small table with a column of every kind, for expressions that are written down."""

import datetime as dt
import decimal

import pyarrow as pa

D = decimal.Decimal


def table():
    ts=[dt.datetime(2020,1,1,0,0,0,123456),dt.datetime(2021,7,1,12),None,dt.datetime(1960,1,1)]
    js=['{"a":1,"b":[1,2.5,null,true,"x"],"c":{"d":"y","e":[{"p":1,"q":"u"},{"p":2,"q":"v"},{"p":3}]},"k":"v"}',None,'[1,2,3,{"a":5}]','{"a":"str","price":8.95,"items":[{"n":"A","price":5},{"n":"B","price":20}],"b":[]}']
    return pa.table({
     "i":pa.array([1,2,None,-4],pa.int32()),
     "j":pa.array([3,0,5,2],pa.int32()),
     "k":pa.array([10**9,2,None,-4],pa.int64()),
     "i8":pa.array([1,2,None,-4],pa.int8()),
     "i16":pa.array([1,2,None,-4],pa.int16()),
     "u8":pa.array([1,2,None,4],pa.uint8()),
     "u16":pa.array([1,2,None,4],pa.uint16()),
     "u32":pa.array([1,2,None,4],pa.uint32()),
     "u64":pa.array([1,2,None,4],pa.uint64()),
     "h":pa.array([1.5,-2.0,None,0.25],pa.float16()),
     "f":pa.array([1.5,-2.0,None,0.25],pa.float32()),
     "d":pa.array([1.5,-2.25,None,0.1],pa.float64()),
     "s":pa.array(["Abc","B%é x",None,""],pa.string()),
     "t":pa.array(["a,b","2020-01-01",None,"12"],pa.string()),
     "L":pa.array(["Abc","B%é x",None,""],pa.large_string()),
     "bn":pa.array([b"abc",b"\xff\x00",None,b""],pa.binary()),
     "LB":pa.array([b"abc",b"\xff\x00",None,b""],pa.large_binary()),
     "fb":pa.array([b"abc",b"\xff\x00a",None,b"zzz"],pa.binary(3)),
     "b":pa.array([True,False,None,True]),
     "dt":pa.array([v and v.date() for v in ts],pa.date32()),
     "d64":pa.array([v and v.date() for v in ts],pa.date64()),
     "ts":pa.array(ts,pa.timestamp("us")),
     "tss":pa.array([v and v.replace(microsecond=0) for v in ts],pa.timestamp("s")),
     "tsn":pa.array(ts,pa.timestamp("ns")),
     "tz":pa.array(ts,pa.timestamp("us","UTC")),
     "tb":pa.array(ts,pa.timestamp("us","Europe/Berlin")),
     "to":pa.array(ts,pa.timestamp("us","+02:00")),
     "t32":pa.array([1,2,None,80000],pa.time32("s")),
     "t64":pa.array([1,2,None,80000*10**6],pa.time64("us")),
     "du":pa.array([1,2,None,-80000*10**6],pa.duration("us")),
     "dus":pa.array([1,2,None,-80000],pa.duration("s")),
     "de":pa.array([D("1.50"),D("-2.25"),None,D("100.00")],pa.decimal128(10,2)),
     "d2":pa.array([D("1.5"),D("-2.2"),None,D("100.0")],pa.decimal256(40,1)),
     "li":pa.array([[1,2,None],[3],None,[]],pa.list_(pa.int32())),
     "lb":pa.array([[3,1,1],[2],None,[7]],pa.list_(pa.int64())),
     "ls":pa.array([["a","b"],["c",None],None,[]],pa.list_(pa.string())),
     "lf":pa.array([[1.5,2.0],[0.0,1.0],None,[3.0,4.0]],pa.list_(pa.float32())),
     "lll":pa.array([[[1,2],[3]],[[4]],None,[]],pa.list_(pa.list_(pa.int32()))),
     "Li":pa.array([[1,2,None],[3],None,[]],pa.large_list(pa.int32())),
     "v":pa.array([[1.,2.],[3.,4.],None,[0.,0.]],pa.list_(pa.float32(),2)),
     "lst":pa.array([[{"x":1,"y":"a"}],[{"x":2,"y":"b"},{"x":3,"y":"c"}],None,[]],pa.list_(pa.struct([("x",pa.int32()),("y",pa.string())]))),
     "st":pa.array([{"x":1,"y":"a"},{"x":None,"y":"b"},None,{"x":3,"y":"c"}],pa.struct([("x",pa.int32()),("y",pa.string())])),
     "ss":pa.array([{"in":{"z":1}},{"in":None},None,{"in":{"z":3}}],pa.struct([("in",pa.struct([("z",pa.int32())]))])),
     "dic":pa.array(["a","b",None,"a"]).dictionary_encode(),
     "js":pa.array(js,pa.json_()),
    })
