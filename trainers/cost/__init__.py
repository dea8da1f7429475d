"""What a training step costs, in memory, multiply-adds and time."""
