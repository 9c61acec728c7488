"""Write a few notes into the workspace and list them."""

import json
import os
import pathlib

NOTES = {
    "monday.txt": "the build was red and the night was long but the tests were honest",
    "tuesday.txt": "we wrote less code and deleted more of it",
    "wednesday.txt": "the machine went dark at noon and nothing was lost",
    "thursday.txt": "somebody asked why and the journal knew",
}

workspace = pathlib.Path(os.environ["BAILIWICK_WORKSPACE"])
for name, text in NOTES.items():
    (workspace / name).write_text(text)
with (workspace / "effects.log").open("a") as log:
    log.write(f"collect {os.environ['BAILIWICK_EFFECT_KEY']}\n")
print(json.dumps({"notes": sorted(NOTES)}))
