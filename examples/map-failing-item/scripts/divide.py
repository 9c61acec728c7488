import json
import sys

print(json.dumps({"quotient": 24 // int(sys.argv[1])}))
