"""Simulated runs under every network fault, judged by invariants."""
