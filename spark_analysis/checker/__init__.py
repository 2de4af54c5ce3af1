"""The checker: from messages to verdicts. ``session_jobs`` cuts a session into parts, ``part_check`` judges one."""
