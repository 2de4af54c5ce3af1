"""A job for spark-submit: every finding of captures as Parquet. spark-submit findings_job.py SOURCE OUTPUT"""

import sys

from pyspark.sql import SparkSession

from topicshark import analyse

source, output = sys.argv[1:]
spark = SparkSession.builder.appName("topicshark findings").getOrCreate()
analysis = analyse(spark, source)
analysis.findings.write.mode("overwrite").parquet(output)
for capture, why in analysis.failed.items():
    print(f"{capture}: {why}", file=sys.stderr)
sys.exit(4 if analysis.failed else 0)
