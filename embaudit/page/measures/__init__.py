"""Each measure's section of an audit's page, made of the facts that were read from the warehouse."""
