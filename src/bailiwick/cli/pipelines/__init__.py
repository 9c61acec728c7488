"""A pipeline from the command line: asked for, made ready, carried out round by round."""
