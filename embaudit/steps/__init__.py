"""Steps: what a measure computes, staged under the content of its arguments; nothing here knows Prefect."""
