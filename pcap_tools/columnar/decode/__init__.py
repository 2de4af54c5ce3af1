"""From datagrams to columns: which dialect, which layout, the plans and the walk, and the Arrow arrays."""
