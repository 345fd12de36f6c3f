"""The demonstration: the whole job on real images, with simulated people (`manage.py demo`)."""
