"""The doctors: plain, reference, custom, with a planner (`planner/`) and uncertainty-aware (`uncertainty/`)."""
