"""The race against PyTorch: either side, and the check that both are one."""
