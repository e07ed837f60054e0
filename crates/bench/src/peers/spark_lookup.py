"""How long one object of an RDD is looked for: among all, and, where objects lie by their keys' hashes, in one partition.

Makes so many objects of so many bytes, looks for some of them, checks what is found, and says on its last line how long it took.
"""

import json
import random
import sys
import time

import pyspark


def record(number, length):
    return f"user{number}", f"{number:08d}".ljust(length, "x")


def look(objects, records, length, seconds):
    took = []
    draw = random.Random(records)
    end = time.monotonic() + seconds
    # The first one also has Spark send its program.
    while len(took) < 4 or (time.monotonic() < end and len(took) < 1000):
        key, value = record(draw.randrange(records), length)
        begin = time.monotonic()
        found = objects.lookup(key)
        took.append(time.monotonic() - begin)
        if found != [value]:
            sys.exit(f"{len(found)} objects {key} were found, or another one")
    return took[1:]


def main(records, length, seconds, threads):
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
    }
    conf = pyspark.SparkConf().setMaster(f"local[{threads}]").setAppName("lookup").setAll(settings.items())
    context = pyspark.SparkContext(conf=conf)
    context.setLogLevel("ERROR")
    begin = time.monotonic()
    objects = context.range(records, numSlices=threads).map(lambda number: record(number, length)).cache()
    objects.count()
    load_s = time.monotonic() - begin
    all_s = look(objects, records, length, seconds)
    by_key = objects.partitionBy(threads).cache()
    by_key.count()
    one_s = look(by_key, records, length, seconds)
    context.stop()
    print(json.dumps({"load_s": load_s, "all_s": all_s, "one_s": one_s}), flush=True)


main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
