# SPDX-License-Identifier: Apache-2.0
"""spark_sql.py JARS: takes one JSON object a line, {"catalogs": {NAME: DIR}} for a new session or
{"sql": TEXT}, and answers each with one: {"rows": [[...]]} or {"error": TEXT}. Doubles come as the hexadecimal of their
bits, binary as hexadecimal, times as microseconds since 1970, maps as pairs, structs as lists."""
import datetime
import json
import os
import struct
import sys

from pyspark.sql import Row, SparkSession
from pyspark.sql.types import ArrayType, MapType, StructType

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
EPOCH = datetime.datetime(1970, 1, 1)


def plain(value):
    if isinstance(value, float):
        return format(struct.unpack("<Q", struct.pack("<d", value))[0], "x")
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, datetime.datetime):
        return (value - EPOCH) // datetime.timedelta(microseconds=1)
    if isinstance(value, (Row, list, tuple)):
        return [plain(x) for x in value]
    return value


def with_entries(text, kind, depth=0):
    """An expression that gives the maps in a value as arrays: on the way to Python a map loses its order."""
    if isinstance(kind, MapType):
        return f"map_entries({text})"
    if isinstance(kind, ArrayType):
        inner = with_entries(f"x{depth}", kind.elementType, depth + 1)
        return text if inner == f"x{depth}" else f"transform({text}, x{depth} -> {inner})"
    if isinstance(kind, StructType):
        parts = [(f.name, with_entries(f"{text}.`{f.name}`", f.dataType, depth)) for f in kind.fields]
        if all(part == f"{text}.`{name}`" for name, part in parts):
            return text
        whole = ", ".join(f"'{name}', {part}" for name, part in parts)
        return f"if({text} is null, null, named_struct({whole}))"
    return text


def open_session(spark, catalogs):
    session = spark.newSession()
    for name, directory in catalogs.items():
        prefix = f"spark.sql.catalog.{name}"
        session.conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
        session.conf.set(prefix + ".type", "jdbc")
        session.conf.set(prefix + ".uri", f"jdbc:sqlite:{directory}/catalog.db")
        session.conf.set(prefix + ".warehouse", f"file://{directory}/warehouse")
        session.conf.set(prefix + ".cache-enabled", "false")
    return session


def run(spark, text):
    found = spark.sql(text)
    if any(isinstance(f.dataType, (MapType, ArrayType, StructType)) for f in found.schema.fields):
        found = found.selectExpr(*(f"{with_entries(f'`{f.name}`', f.dataType)} as `{f.name}`"
                                   for f in found.schema.fields))
    return [plain(row) for row in found.collect()]


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Spark prints is no answer
    spark = (SparkSession.builder.master("local[2]").appName("deep").config("spark.jars", sys.argv[1])
             .config("spark.sql.extensions", EXTENSIONS).config("spark.ui.enabled", "false")
             .config("spark.driver.memory", "1g").config("spark.sql.session.timeZone", "UTC")
             .config("spark.sql.shuffle.partitions", "2").config("spark.driver.host", "127.0.0.1")
             .config("spark.driver.bindAddress", "127.0.0.1").getOrCreate())
    spark.sparkContext.setLogLevel("ERROR")
    session = spark
    for line in sys.stdin:
        question, rows = json.loads(line), []
        try:
            if "catalogs" in question:
                session = open_session(spark, question["catalogs"])
            else:
                rows = run(session, question["sql"])
            answered = {"rows": rows}
        except Exception as error:
            answered = {"error": str(error)[:4000]}
        print(json.dumps(answered), file=out, flush=True)
    spark.stop()


main()
