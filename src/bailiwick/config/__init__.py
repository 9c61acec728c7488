"""The one reader of configuration files and of the environment. Every value knows where it was set."""
