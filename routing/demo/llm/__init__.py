"""Two tiny language models that do sums, for tests and `make demo-llm`: a real engine, on any machine.

What is here imports no Django: `questions` and `solutions` need Python alone, the rest an environment with
PyTorch and Transformers.
"""
