"""What all tests share: SIGINT is heeded, Hypothesis profiles, and the markers of tests that need a browser or Node."""

import os
import signal

from hypothesis import settings

from tests.needs import pytest_runtest_setup

__all__ = ["pytest_runtest_setup"]

# A shell has its background jobs ignore SIGINT, and what tests start, and end by SIGINT, would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline per example: cores are shared. A failure prints the line that repeats it.
settings.register_profile("local", deadline=None, print_blob=True)
settings.register_profile("ci", settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "local")
