"""SQL for anyone: a stranger's statement in a child process, views over runs, local queries."""
