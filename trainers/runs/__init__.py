"""Runs on disk and in processes.

`folder` is what a run leaves, `finished` loads it; `child` is the process that
trains for a program, `task_server` that process' own end.
"""
