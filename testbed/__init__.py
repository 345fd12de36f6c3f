"""What tests and benchmarks share. Neither of them imports the other."""
