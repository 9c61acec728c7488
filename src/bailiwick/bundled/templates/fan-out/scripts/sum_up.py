"""Add up what the items came to; those that failed are counted apart."""

import json
import sys

results = json.loads(sys.argv[1])
done = [result["outputs"]["words"] for result in results if result["status"] == "done"]
failed = len(results) - len(done)
print(json.dumps({"summary": f"{sum(done)} words in {len(done)} texts, {failed} failed"}))
