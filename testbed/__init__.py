"""What tests and benchmarks share: rows, worlds, servers. Neither imports the other."""
