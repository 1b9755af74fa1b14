"""Terminal output of results: tables, progress and colours. These modules compute nothing."""
