"""What the outcomes mean: judging, metrics, statistics. Pure functions of records."""
