"""One thread per test process: several that each want all cores spend their time waiting for each other."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
