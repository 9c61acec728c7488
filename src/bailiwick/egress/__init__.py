"""What a sandbox may reach: a proxy that lets only allowed hosts through, and what carries the bytes."""
