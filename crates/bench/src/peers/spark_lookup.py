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
    return took[1:], len(took)


def main(records, length, by_key, seconds, threads):
    spark = context("lookup", threads)
    begin = time.monotonic()
    objects = spark.range(records, numSlices=threads).map(lambda number: record(number, length)).cache()
    if by_key:
        objects = objects.partitionBy(threads).cache()
    # Nothing is made, nor put where it belongs, before it is asked for.
    objects.count()
    load_s = time.monotonic() - begin
    before = cpu_s()
    took_s, looks = look(objects, records, length, seconds)
    user_s, system_s = (after - before for after, before in zip(cpu_s(), before))
    spark.stop()
    said = {"load_s": load_s, "took_s": took_s, "looks": looks, "user_s": user_s, "system_s": system_s}
    print(json.dumps(said), flush=True)


main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "by-key", float(sys.argv[4]), int(sys.argv[5]))
