"""Whole captures to Arrow tables at the speed of memory: numba kernels that walk the tables of any dialect.

    >>> from pcap_tools.columnar.read.reading import read_file, read_batches    # datagrams as arrays
    >>> from pcap_tools.columnar.read.splits import plan_splits                 # parts to read in parallel

Nothing is imported here: the modules with kernels take a moment to load, and not everyone needs all of them.
"""
