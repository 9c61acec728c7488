"""The journal: the only truth of a run. A port, its stores, and what they share."""
