"""The command `derive`, and what `lmlab check` does; nothing heavy is imported until a verb runs."""
