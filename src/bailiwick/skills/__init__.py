"""Skills: disciplines as folders of Markdown, and the tools with which people, editors and agents call them."""
