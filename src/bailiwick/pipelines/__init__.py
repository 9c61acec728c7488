"""Bundled pipelines: from an issue, or from red tests, to a proposal."""
