"""The tamper-evident record: who did what, in a keyed chain that shows every change made to it afterwards."""
