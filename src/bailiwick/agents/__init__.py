"""Agents: one port, one file per backend, one classifier. Nothing here retries, sleeps or decides."""
