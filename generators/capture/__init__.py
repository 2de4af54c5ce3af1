"""Captures of simulated traffic: capture point, frames, noise."""
