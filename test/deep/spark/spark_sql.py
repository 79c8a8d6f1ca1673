# SPDX-License-Identifier: Apache-2.0
"""spark_sql.py JARS: takes one JSON object a line, {"catalog": NAME, "directory": DIR} or {"sql": TEXT},
and answers each with one: {"rows": [[...]]} or {"error": TEXT}. Doubles come as the hexadecimal of their
bits, binary as hexadecimal, times as microseconds since 1970, maps as pairs, structs as lists."""
import datetime
import json
import os
import struct
import sys

from pyspark.sql import Row, SparkSession

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
EPOCH = datetime.datetime(1970, 1, 1)


def plain(value):
    if isinstance(value, float):
        return format(struct.unpack("<Q", struct.pack("<d", value))[0], "x")
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, datetime.datetime):
        return (value - EPOCH) // datetime.timedelta(microseconds=1)
    if isinstance(value, dict):
        return [[plain(k), plain(v)] for k, v in value.items()]
    if isinstance(value, (Row, list, tuple)):
        return [plain(x) for x in value]
    return value


def answer(spark, question):
    if "catalog" in question:
        name, directory = question["catalog"], question["directory"]
        prefix = f"spark.sql.catalog.{name}"
        spark.conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
        spark.conf.set(prefix + ".type", "jdbc")
        spark.conf.set(prefix + ".uri", f"jdbc:sqlite:{directory}/catalog.db")
        spark.conf.set(prefix + ".warehouse", f"file://{directory}/warehouse")
        spark.conf.set(prefix + ".cache-enabled", "false")
        return {"rows": []}
    return {"rows": [plain(row) for row in spark.sql(question["sql"]).collect()]}


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Spark prints is no answer
    spark = (SparkSession.builder.master("local[2]").appName("deep").config("spark.jars", sys.argv[1])
             .config("spark.sql.extensions", EXTENSIONS).config("spark.ui.enabled", "false")
             .config("spark.driver.memory", "1g").config("spark.sql.session.timeZone", "UTC")
             .config("spark.sql.shuffle.partitions", "2").config("spark.driver.host", "127.0.0.1")
             .config("spark.driver.bindAddress", "127.0.0.1").getOrCreate())
    spark.sparkContext.setLogLevel("ERROR")
    for line in sys.stdin:
        try:
            answered = answer(spark, json.loads(line))
        except Exception as error:
            answered = {"error": str(error)[:4000]}
        print(json.dumps(answered), file=out, flush=True)
    spark.stop()


main()
