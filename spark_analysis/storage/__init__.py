"""Folders on a disk or in an object store, and the folders of messages that `topicshark ingest` fills."""
