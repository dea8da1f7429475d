"""Programs that train, evaluate and measure, and what they share."""
