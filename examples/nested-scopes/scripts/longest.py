import json
import sys

print(json.dumps({"longest": max(item["outputs"]["letters"] for item in json.loads(sys.argv[1]))}))
