"""The seed of the run and the soak switch, for modules that need them before fixtures exist."""

import os
import random

SOAK = os.environ.get("GLAIVE_SOAK", "") not in ("", "0")
# Workers of one run inherit the variable, so that all of them generate the same cases.
SEED = int(os.environ.setdefault("GLAIVE_TEST_SEED", str(random.SystemRandom().randrange(1 << 24))))
