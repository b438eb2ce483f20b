"""How many times as many random cases as `make test` these tests try: STOWAGE_EFFORT=4 python -m pytest tests/swap."""

import os

EFFORT = int(os.environ.get("STOWAGE_EFFORT", "1"))
