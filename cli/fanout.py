"""`topicshark fanout`: to how many subscribers messages went, and should have gone."""

from cli.summaries import summary_app

app = summary_app("fanout", "Tell to how many subscribers messages went and should have gone, by topic and by filter.")
