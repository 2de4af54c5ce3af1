"""How right `topicshark check` is: traffic whose truth is known, beside what the checker says of it.

    python -m benchmarks.accuracy                       # all of it; writes docs/accuracy.md
    python -m benchmarks.accuracy --dialect colon --fault ack-late --point broker --seeds 3
    python -m benchmarks.accuracy --quick               # a look, in a minute or two

``jobs`` says what is run, ``judging`` runs it and compares, ``reasons`` explains what is not perfect, ``page`` tells
all of it; ``pipelined`` asks whether ACKs are matched rightly when many requests are under way.
"""
