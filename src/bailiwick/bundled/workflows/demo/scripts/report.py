"""Write the report slowly, so that there is time for the machine to die in the middle."""

import json
import os
import pathlib
import sys
import time

workspace = pathlib.Path(os.environ["BAILIWICK_WORKSPACE"])
with (workspace / "effects.log").open("a") as log:
    log.write(f"report {os.environ['BAILIWICK_EFFECT_KEY']}\n")
time.sleep(1.0)
text = f"{sys.argv[1]}: {sys.argv[2]} words in {sys.argv[3]} notes"
(workspace / "report.txt").write_text(text + "\n")
print(json.dumps({"report": text}))
