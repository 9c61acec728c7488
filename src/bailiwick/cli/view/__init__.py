"""What people see while a run walks. Views only look; nothing in them decides."""
