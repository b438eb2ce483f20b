"""One thread per test process: several that each want all cores spend their time waiting for each other."""

import os
import signal

os.environ.setdefault("OMP_NUM_THREADS", "1")

# a shell lets what it begins in the background ignore Ctrl-C, for which some tests would wait without end
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
