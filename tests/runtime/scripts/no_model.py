"""Trains nothing."""

print("nothing to train")
