"""What reviewers say of proposed links: kept in SQLite, counted, exported."""
