"""Traffic made here: simulated networks, labelled faults, captures of any size, and the truth about each."""
