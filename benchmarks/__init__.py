"""What embaudit costs, measured: ``python -m benchmarks`` prints the figures of benchmarks/README.md."""
