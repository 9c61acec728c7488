"""Environments that tests need: how a project is installed, once for each state of its manifests."""
