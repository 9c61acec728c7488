"""Print the list to go through. Yours may list files, issues, hosts."""

import json

print(json.dumps({"texts": [
    {"name": "first", "text": "one two three"},
    {"name": "second", "text": "four five"},
    {"name": "third", "text": "six"},
]}))
