"""The files beside the weights that other runtimes read: are they what the weights are?

``held`` runs each ONNX file on a few texts of every kind and lays its tensors beside the checkpoint's, ``quantised``
says what a quantisation alone would do, ``findings`` what follows; ``files`` runs all of it.
"""
