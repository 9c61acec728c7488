"""The runtime: carries out what the engine decides, and journals what happened."""
