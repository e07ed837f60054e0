"""How long one object of an RDD is looked for: among all, or, where objects lie by their keys' hashes, in one partition.

Makes so many objects of so many bytes, looks for some of them, checks what is found, and says on its last line how long it took.
"""

import json
import random
import sys
import time


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


def main(records, length, by_key, seconds, threads):
    spark = context("lookup", threads)
    begin = time.monotonic()
    objects = spark.range(records, numSlices=threads).map(lambda number: record(number, length)).cache()
    objects.count()
    load_s = time.monotonic() - begin
    if by_key:
        objects = objects.partitionBy(threads).cache()
        objects.count()
    took_s = look(objects, records, length, seconds)
    spark.stop()
    print(json.dumps({"load_s": load_s, "took_s": took_s}), flush=True)


main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "by-key", float(sys.argv[4]), int(sys.argv[5]))
