"""What the programs for Spark begin with: Spark in this process, on this machine alone."""

import pyspark


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


