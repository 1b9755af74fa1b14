"""lab11: a laboratory sheet on recurrent networks and Transformers, with solutions."""
