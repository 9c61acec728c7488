"""Walking a workflow without running anything: the real engine on stand-in answers, and what they covered."""
