"""The doctor: what this machine has, what is missing, what is not protected."""
