"""One file for each sub-command; `topicshark/main.py` lists them."""
