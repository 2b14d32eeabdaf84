"""What was published of all-MiniLM-L6-v2, or computed independently of embaudit, and where."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

# Id, token, score and validation value (cosine) of every token on the published shortlist, from the files named in
# ``compared.SOURCES`` as C. Values are known of the 21 sticky tokens and of 40 others.
SHORTLIST = Path(__file__).with_name("published-sticky-all-MiniLM-L6-v2.csv")

VOCABULARY, SCANNED, CANDIDATES, STICKY = 30_522, 23_699, 474, 21
CATEGORIES = {"special": 5, "ok": 23_694, "unreachable_special": 994, "unreachable_multi": 5_829}
CUTOFF, U = 49.204199200000005, 0.1998460739850998

# Similarities before and after eight copies of the id, on the 250 published pairs: ρ_0, and ρ of prefix and suffix.
RHO_0 = 0.318952
RHO = {
    12_471: (0.261063, 0.276034),
    12_922: (0.28921, 0.299684),
    9_786: (0.266757, 0.281034),
    21_473: (0.248805, 0.278423),
    5_049: (0.289159, 0.298232),
    1_063: (0.250437, 0.262864),
    18_358: (0.260528, 0.280702),
    23_336: (0.299444, 0.302914),
}
# Median and range of the pull of the published sticky tokens, and the range of ordinary ones, by id insertion.
PULL_OF_STICKY, PULL_OF_ORDINARY = (0.18, 0.10, 0.28), (0.06, 0.17)

# The first 200 and 1 000 lines of the Wikipedia sentences, blank ones dropped.
SOCM_FIRST_200 = {
    "socm_mean": 0.44227106490194057,
    "d_mu_mean": 0.44515663340189493,
    "d_sigma_mean": 0.8005076944409034,
    "socm_max": 1.0111118421108918,
    "socm_min": 0.04791912345364439,
}
SOCM_FIRST_1000 = {"socm_mean": 0.436, "trace_mean": 2.151084, "trace_max": 6.293315, "traces_above_bound": 534}
# Of the paper's checkpoints the nearest relative: twelve layers instead of six.
SOCM_L12 = {"wikipedia": 0.313, "msmarco": 0.348}

# By layer, on the first 100 lines.
LAYERS = {
    "lambda_head_mean": (0.113, 0.3616, 0.4171, 0.5672, 0.4255, 0.1043),
    "lambda_head_averaged_attention": (0.217, 0.664, 0.8447, 1.1652, 0.9219, 0.1251),
    "contraction": (0.0889, 0.1189, 0.1024, 0.0961, 0.0687, 0.0778),
    "r": (5.0345, 2.8099, 2.0648, 1.6742, 1.6569, 1.1712),
    "c": (0.7309, 1.0146, 1.1565, 1.2676, 1.397, 1.607),
    "normalised_spread": (4.1051, 3.3317, 2.7706, 2.4278, 2.5943, 2.1818),
    "sigma_a": (0.7287, 1.1521, 1.1685, 1.1318, 1.2389, 0.725),
    "within_text_cosine": (0.2065, 0.2376, 0.276, 0.3144, 0.3611, 0.4256),
}

# Mean cosine of movie reviews cut to so many tokens.
LENGTHS = (16, 128, 256, 510)
COSINE_BY_LENGTH = {
    "truncation": (0.13, 0.19, 0.26, 0.45),
    "windows": (0.14, 0.44, 0.55, 0.65),
    "input_embeddings": (0.52, 0.88, 0.93, 0.95),
}
# Of the simulation's cells, those in which the published bound on σ_a fails; σ_a at σ_s = 2, n = 128.
BOUND_FAILS, BOUND_CELL = 38, (2.0, 128, 0.864)

# nDCG@10 on SciFact: all of it, and by τ on 1 183 abstracts; there also the documents' mean cosine.
SCIFACT = 0.6451
NDCG_BY_TAU = {1.0: 0.772, 0.9: 0.775, 0.8: 0.769, 0.7: 0.766, 0.5: 0.727}
COSINE_BY_TAU = {1.0: 0.134, 0.9: 0.138, 0.8: 0.148, 0.7: 0.163, 0.5: 0.206}


@dataclass(frozen=True)
class PublishedToken:
    """A token of the published shortlist; the value is None where it was not recorded."""

    token_id: int
    token: str
    score: float
    value: float | None
    is_sticky: bool


def published_shortlist() -> list[PublishedToken]:
    """The 474 tokens, highest score first."""
    with SHORTLIST.open(encoding="utf-8", newline="") as file:
        return [
            PublishedToken(
                int(row["token_id"]),
                row["token"],
                float(row["score"]),
                float(row["value"]) if row["value"] else None,
                row["is_sticky"] == "1",
            )
            for row in csv.DictReader(file)
        ]
