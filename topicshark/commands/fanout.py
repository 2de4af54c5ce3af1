"""`topicshark fanout`: to how many subscribers messages went, and should have gone."""

from topicshark.commands.summaries import summary_app

app = summary_app("fanout", "Show fan-out: copies expected and delivered, by topic and by filter.")
