"""How numba kernels are compiled and kept, and the machine words that they share."""
