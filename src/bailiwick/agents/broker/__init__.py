"""The model broker: agents get a port on loopback and a token for one turn; the real credential stays here."""
