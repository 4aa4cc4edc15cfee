"""What each member takes of a table, and the members where none are given."""
