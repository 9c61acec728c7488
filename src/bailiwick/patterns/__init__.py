"""The patterns: an issue becomes a proposal, a red build is healed. Both are bundled workflows with a command each."""
