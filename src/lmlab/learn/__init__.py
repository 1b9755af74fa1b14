"""Training: the training loop, optimizer, schedule, checkpoints and runs on disk."""
