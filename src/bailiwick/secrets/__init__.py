"""Secrets as people ask about them: which references there are, which resolve, which values must be covered."""
