"""The broker as a process: sockets, signals, the state on disk, captures and the log."""
