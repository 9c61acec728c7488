import json
import sys

print(json.dumps({"area": int(sys.argv[1]) * int(sys.argv[2])}))
