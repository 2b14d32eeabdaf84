"""Why was it not found? One search after another, from the query to the place where it was lost (``embaudit why``)."""
