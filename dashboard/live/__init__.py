"""What runs beside a collector: the analysis of live runs."""
