"""`topicshark timing`: how long acknowledgements take, by client and kind of request, and forwards."""

from topicshark.commands.summaries import summary_app

app = summary_app("timing", "Measure acknowledgement and forwarding times; list missing acknowledgements.")
