"""What the programs for Spark begin with: Spark in this process, on this machine alone."""

import os

import pyspark


def cpu_s():
    """Seconds of CPU time, the user's and the kernel's, of this process, of all that it has started, and of what those have."""
    parents, times = {}, {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as file:
                # The name may hold blanks, but ends with the last bracket.
                words = file.read().rpartition(")")[2].split()
        except OSError:
            # It has ended since; then its parent has its time.
            continue
        user, system, ended_user, ended_system = map(int, words[11:15])
        parents[int(name)], times[int(name)] = int(words[1]), (user + ended_user, system + ended_system)
    user, system = 0, 0
    for process, (own_user, own_system) in times.items():
        above = process
        while above not in (os.getpid(), 0):
            above = parents.get(above, 0)
        if above:
            user, system = user + own_user, system + own_system
    ticks = os.sysconf("SC_CLK_TCK")
    return user / ticks, system / ticks


def context(name, threads):
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
    }
    conf = pyspark.SparkConf().setMaster(f"local[{threads}]").setAppName(name).setAll(settings.items())
    spark = pyspark.SparkContext(conf=conf)
    spark.setLogLevel("ERROR")
    return spark


