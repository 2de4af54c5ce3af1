# Two images. Without --target: the nodes of compose.yaml, the broker and the clients, and nothing of Spark, which they do
# not need. With `docker build --target full -t topicshark-full .`: everything, to check captures in a container.
FROM python:3.12-slim AS full
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends default-jre-headless tshark tcpdump \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /topicshark
COPY pyproject.toml constraints.txt LICENSE pyspark_topicshark.py ./
COPY pcap_tools pcap_tools
COPY reference_broker reference_broker
COPY generators generators
COPY spark_analysis spark_analysis
COPY topicshark topicshark
RUN pip install --no-cache-dir -c constraints.txt .
WORKDIR /captures
ENTRYPOINT ["topicshark"]

FROM python:3.12-slim
RUN pip install --no-cache-dir "pydantic>=2.9,<3" "typer>=0.26,<1"
WORKDIR /topicshark
COPY pcap_tools pcap_tools
COPY reference_broker reference_broker
COPY topicshark topicshark
ENV PYTHONUNBUFFERED=1
ENTRYPOINT ["python", "-m", "topicshark.main"]
