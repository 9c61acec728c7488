"""What others connect to: one web application with tokens and limits, and the MCP server over HTTP and stdio."""
