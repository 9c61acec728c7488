"""The results come in the order of the list, whoever was first."""

import json
import sys

results = json.loads(sys.argv[1])
shown = [str(r["outputs"]["quotient"]) if r["status"] == "done" else "-" for r in results]
print(json.dumps({"summary": ",".join(shown)}))
