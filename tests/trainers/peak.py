"""Says after a program how much memory its process had at most, in bytes.

python -m tests.trainers.peak PROGRAM ARGUMENTS
"""

import pathlib
import runpy
import sys

if __name__ == "__main__":
    del sys.argv[0]
    try:
        runpy.run_module(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    # Not ru_maxrss: a child starts with its parent's.
    status = pathlib.Path("/proc/self/status").read_text()
    print("peak", int(status.split("VmHWM:")[1].split()[0]) * 1024)
