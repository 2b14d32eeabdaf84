"""Published scores: does a checkpoint, as it is declared here, reach what a result file of MTEB says of it?

``published`` reads the file and finds the data of each task, ``readings`` scores the checkpoint on all of it, as it is
declared and otherwise, ``report`` says which reading was published.
"""
