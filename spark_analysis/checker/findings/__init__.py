"""Findings as rows of data, the evidence that limits them, and their reasons and causes."""
