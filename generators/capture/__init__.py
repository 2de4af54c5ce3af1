"""What a capture of simulated traffic holds: which frames, of which datagrams, seen from which point."""
