"""Count the attempts in the run's own workspace; fail until the third."""

import json
import os
import sys
from pathlib import Path

tally = Path(os.environ["BAILIWICK_WORKSPACE"]) / "attempts"
attempts = int(tally.read_text()) + 1 if tally.exists() else 1
tally.write_text(str(attempts))
if attempts < 3:
    sys.exit(f"attempt {attempts} fails")
print(json.dumps({"attempts": attempts}))
