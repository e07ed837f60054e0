"""PageRank on an RDD, as Spark's own example does it, with what comes to nodes that point nowhere spread over all.

Reads lines `node<TAB>target target ...`, writes lines `node rank`, and says on its last line how long it took.
"""

import json
import sys
import time
from operator import add

DAMPING = 0.85


def node_of(line):
    node, _, targets = line.partition("\t")
    return int(node), [int(target) for target in targets.split()]


def shares(entry):
    node, (targets, rank) = entry
    # Each node is given something, so that each has a rank.
    yield node, 0.0
    for target in targets:
        yield target, rank / len(targets)


def main(nodes_path, ranks_path, iterations, threads):
    spark = context("pagerank", threads)
    begin = time.monotonic()
    links = spark.textFile(nodes_path, threads).map(node_of).partitionBy(threads).cache()
    nodes = links.count()
    ranks = links.mapValues(lambda _: 1.0 / nodes).cache()
    ranks.count()
    load_s = time.monotonic() - begin
    iterations_s = []
    before = cpu_s()
    for _ in range(iterations):
        begin = time.monotonic()
        joined = links.join(ranks, threads)
        nowhere = joined.values().filter(lambda entry: not entry[0]).map(lambda entry: entry[1]).sum()
        base = (1.0 - DAMPING + DAMPING * nowhere) / nodes
        after = joined.flatMap(shares).reduceByKey(add, threads).mapValues(lambda rank: base + DAMPING * rank).cache()
        after.count()
        ranks.unpersist()
        ranks = after
        iterations_s.append(time.monotonic() - begin)
    user_s, system_s = (after - before for after, before in zip(cpu_s(), before))
    with open(ranks_path, "w") as file:
        file.writelines(f"{node} {rank!r}\n" for node, rank in ranks.collect())
    spark.stop()
    said = {"load_s": load_s, "iterations_s": iterations_s, "user_s": user_s, "system_s": system_s}
    print(json.dumps(said), flush=True)


main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
