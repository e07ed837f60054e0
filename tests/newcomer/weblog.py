"""What a newcomer does: loads a web log through one port of Tenon with one well-known client and reads it back
through the other port with another, both ways. Knows nothing of Tenon beyond its two ports."""

import io
import sys

import pymemcache
import redis
import zstandard


def requests(folder):
    """Every request of the log, each one value: all lines of both files."""
    for name in ("nasa_1995-08-01_day.tsv.zst", "nasa_1995-08-01_part.log.zst"):
        with open(f"{folder}/{name}", "rb") as packed:
            text = zstandard.ZstdDecompressor().stream_reader(packed).read()
        for number, line in enumerate(io.BytesIO(text)):
            yield f"{name[:2]}{name[-7]}:{number}", line.rstrip(b"\n")


def batches(pairs, size):
    for start in range(0, len(pairs), size):
        yield pairs[start : start + size]


def main(folder, resp_port, memcached_port):
    resp = redis.Redis(host="127.0.0.1", port=resp_port)
    memcached = pymemcache.Client(("127.0.0.1", memcached_port), no_delay=True)
    pairs = list(requests(folder))
    assert len(pairs) > 50_000, f"only {len(pairs)} requests in the log"
    assert len({key for key, _ in pairs}) == len(pairs), "every request has a key of its own"

    for batch in batches(pairs, 500):
        pipeline = resp.pipeline(transaction=False)
        for key, value in batch:
            pipeline.set("r:" + key, value)
        assert all(pipeline.execute())
    for batch in batches(pairs, 100):
        got = memcached.get_many(["r:" + key for key, _ in batch])
        for key, value in batch:
            assert got.get("r:" + key) == value, f"r:{key}: {got.get('r:' + key)} is not {value}"

    for key, value in pairs:
        assert memcached.set("m:" + key, value, noreply=False)
    for batch in batches(pairs, 500):
        got = resp.mget(["m:" + key for key, _ in batch])
        for (key, value), stored in zip(batch, got):
            assert stored == value, f"m:{key}: {stored} is not {value}"

    assert resp.dbsize() == 2 * len(pairs), resp.dbsize()
    print(f"{len(pairs)} requests each way")


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
