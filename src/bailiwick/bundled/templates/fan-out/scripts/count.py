"""Count the words of one text."""

import json
import sys

name, text = sys.argv[1:]
print(json.dumps({"name": name, "words": len(text.split())}))
