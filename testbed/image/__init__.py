"""The image of docs/compose, built and started: `make test-image`, or `python -m testbed.image`."""
