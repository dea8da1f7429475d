"""Settings and seeds, the runs they ask for, how sure their outcomes are."""
