"""What embaudit costs, measured: ``python -m benchmarks`` prints the table of benchmarks/README.md."""
