"""What people see while a run walks. Views only look; nothing in them decides."""

from bailiwick.cli.view.choose import choose_view
from bailiwick.cli.view.port import RunView

__all__ = ["RunView", "choose_view"]
