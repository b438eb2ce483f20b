"""How many times as many random cases as in `make test` are tried; `make test-all` tries four times as many.

Only tests that say the same again for other random cases or other sizes read it.
"""

import os

EFFORT = int(os.environ.get("STOWAGE_EFFORT", "1"))
