"""Runs whose target is everything from the same source: they take in items that came after their pool was
frozen, and an audit of these looks whether models get worse.
"""
