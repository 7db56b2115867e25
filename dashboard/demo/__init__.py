"""What ``cascade demo`` runs: a small real training job and the faults done to it."""
