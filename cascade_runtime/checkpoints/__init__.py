"""What is kept beside a checkpoint, so that a resume can be judged (docs/checkpoints.md)."""
