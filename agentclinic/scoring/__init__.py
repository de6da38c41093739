"""What the outcomes mean: metrics, statistics, comparisons and judges, as functions of records."""
