"""What runs inside a training process; the only folder that imports torch."""
