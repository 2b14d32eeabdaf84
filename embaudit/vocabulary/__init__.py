"""What a checkpoint's tokenizer holds: each entry's category, reachability, origin and script."""
