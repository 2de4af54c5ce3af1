# The nodes of compose.yaml: the broker, the clients, and nothing of Spark, which they do not need.
FROM python:3.12-slim
RUN pip install --no-cache-dir "pydantic>=2.9,<3" "typer>=0.26,<1"
WORKDIR /topicshark
COPY pcap_tools pcap_tools
COPY reference_broker reference_broker
COPY cli cli
ENV PYTHONUNBUFFERED=1
ENTRYPOINT ["python", "-m", "cli.main"]
