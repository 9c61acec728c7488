"""Count the words of one note."""

import json
import os
import pathlib
import sys

workspace = pathlib.Path(os.environ["BAILIWICK_WORKSPACE"])
words = len((workspace / sys.argv[1]).read_text().split())
with (workspace / "effects.log").open("a") as log:
    log.write(f"count {os.environ['BAILIWICK_EFFECT_KEY']}\n")
print(json.dumps({"words": words}))
