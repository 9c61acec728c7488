"""Pictures of workflows: Mermaid, Graphviz, SVG and text, made by ourselves from the compiled graph."""
