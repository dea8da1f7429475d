"""A version folder: its files, how they are made and checked."""
