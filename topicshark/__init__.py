"""The `topicshark` command: thin, one file a command."""
