-- How many times as fast as float32 half precision was on the machine that scanned.

ALTER TABLE sticky_summary ADD COLUMN scan_speedup DOUBLE;
