echo '{"found": {"file": "report.csv", "errors": 2}}'
