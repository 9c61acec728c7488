echo '{"size": "large"}'
