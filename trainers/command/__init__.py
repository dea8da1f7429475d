"""`encapnet`, the one command for all programs, and its shell completion.

`options` reads the programs' flags, `shells` writes them in each shell's words.
"""
