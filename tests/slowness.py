"""How slow this machine is, and how the tests' processes take their memory."""

import os
import time

import psutil

_IMPORT_S, _MOST_S = 4.0, 8.0
"""What a usual machine needs to import pytest, the service and the test tools, and at most needs, in seconds."""

_needed_s = time.time() - psutil.Process().create_time()

SLOWNESS = 1.0 if _needed_s <= _MOST_S else min(_needed_s / _IMPORT_S, 20.0)
"""How many times longer this process took to import them, at most 20; 1 on a usual machine.

It multiplies waits for something that happens for sure unless there is a fault: a process that starts, a job that is
made. What could make such a wait end in its place, such as another poll, comes after an hour in these tests. It also
multiplies the CPU time within which a function has to end that would need minutes if it compared everything with
everything.
"""

ALLOCATOR = {name: os.environ[name] for name in ("PYTHONMALLOC", "GLIBC_TUNABLES") if name in os.environ}
"""The variables with which the Makefile chose where memory comes from, for processes with their own environment."""
