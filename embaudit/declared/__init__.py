"""What a declaration may say: of a figure, a table, a finding, a page, a chart."""
