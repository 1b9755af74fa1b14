"""Files written whole or not at all, the folder where things are cached, and locks between processes."""
