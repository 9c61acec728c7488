"""Print a greeting as JSON, the way a node with outputs has to."""

import json
import sys

who = sys.argv[1]
print(json.dumps({"greeting": f"Hello, {who}!", "letters": len(who)}))
