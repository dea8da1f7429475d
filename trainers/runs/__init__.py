"""Run folders: what a run leaves, finished runs, the process that trains."""
