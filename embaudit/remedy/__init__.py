"""Does a lower attention temperature help *this* checkpoint, and does it beat what people do instead?

``material`` picks texts by their content, ``split`` halves them; ``classification``, ``retrieval`` and ``similarity``
are the tasks, ``baselines`` what stands beside a temperature, ``interval`` the paired bootstrap; ``compare`` chooses τ
on one half and reports on the other. Nothing here runs a model: vectors come in, rows go out.
"""

from embaudit.remedy.baselines import Centring, Whitening, average_pieces, pieces_of
from embaudit.remedy.classification import Classification
from embaudit.remedy.compare import Arm, Choice, Row, compare
from embaudit.remedy.material import Graded, Judgements, Labelled, pick_graded, pick_judged, pick_labelled
from embaudit.remedy.retrieval import Retrieval
from embaudit.remedy.similarity import Similarity
from embaudit.remedy.task import Items, Task

MEASURE_VERSION = 1

__all__ = [
    "MEASURE_VERSION",
    "Arm",
    "Centring",
    "Choice",
    "Classification",
    "Graded",
    "Items",
    "Judgements",
    "Labelled",
    "Retrieval",
    "Row",
    "Similarity",
    "Task",
    "Whitening",
    "average_pieces",
    "compare",
    "pick_graded",
    "pick_judged",
    "pick_labelled",
    "pieces_of",
]
