"""Loops over whole sessions that numpy has no word for, compiled. Pure functions of arrays; nothing is allocated."""
