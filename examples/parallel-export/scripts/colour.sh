echo '{"colour": "red"}'
