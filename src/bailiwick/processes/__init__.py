"""Processes of this machine: started, guarded, heard, ended for certain, and who owns them."""
