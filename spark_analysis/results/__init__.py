"""What a check gives: verdicts, findings, and their sentences."""
