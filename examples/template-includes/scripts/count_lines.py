import json
import sys

print(json.dumps({"lines": len([line for line in sys.argv[1].splitlines() if line.strip()])}))
