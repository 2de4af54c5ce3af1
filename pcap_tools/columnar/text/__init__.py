"""From columns to the lines that `topicshark decode` prints."""
