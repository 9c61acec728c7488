"""Pretend to send the total somewhere; the first attempt fails, as networks do."""

import os
import pathlib
import sys

if os.environ["BAILIWICK_ATTEMPT"] == "1":
    sys.exit("connection reset (on purpose)")
with (pathlib.Path(os.environ["BAILIWICK_WORKSPACE"]) / "effects.log").open("a") as log:
    log.write(f"upload {os.environ['BAILIWICK_EFFECT_KEY']}\n")
