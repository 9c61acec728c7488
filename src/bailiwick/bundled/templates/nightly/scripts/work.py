"""The night's work. A non-zero exit code is a failure and is tried again."""

import json
import sys

night = int(sys.argv[1])
print(json.dumps({"report": {"rows": 100 + night}}))
