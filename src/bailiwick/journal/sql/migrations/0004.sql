-- A tree of runs is asked again and again for those of its members that are not over: they are few, the tree may be large.
CREATE INDEX run_tree ON run (root_id, status);
