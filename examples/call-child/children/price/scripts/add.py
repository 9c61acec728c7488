import json
import sys

percent = {"AT": 20, "DE": 19}[sys.argv[2]]
print(json.dumps({"gross": round(float(sys.argv[1]) * (100 + percent) / 100)}))
