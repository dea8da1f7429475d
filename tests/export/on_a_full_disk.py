"""`python -m export` where no file may have more than so many bytes.

python -m tests.export.on_a_full_disk BYTES FLAGS
"""

import resource
import runpy
import sys

if __name__ == "__main__":
    limit = int(sys.argv.pop(1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    runpy.run_module("export", run_name="__main__", alter_sys=True)
