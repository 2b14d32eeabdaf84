"""What people type, by command: the first lines of each command's help."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "check": (
        "check packaged:all-MiniLM-L6-v2",
        "check ./my-checkpoint --base ./my-old-one --out page.html",
        "check http://localhost:8080",
        "check ./eight-billion --files",
    ),
    "parity": (
        "parity ./my-checkpoint --with http://localhost:8080",
        "parity ./my-checkpoint --with python:app.search:embeddings",
    ),
    "passport": ("passport ./my-checkpoint --out passport.json",),
    "verify": ("verify passport.json --with http://localhost:8080",),
    "vectors": (
        "vectors ./chroma ./my-checkpoint",
        "vectors index.parquet ./my-checkpoint --vector embedding --text body",
        "vectors index.parquet",
    ),
    "fingerprint": (
        "fingerprint ./my-checkpoint --name my-model",
        "fingerprint ./storeA ./storeB --name our-model --out our-model.json",
    ),
    "search": ("search ./chroma ./my-checkpoint", "search rows.faiss --setting nprobe=16 --recall .95"),
    "why": (
        'why ./chroma ./my-checkpoint --query "can I return a gift" --expect policy-17',
        "why ./chroma ./my-checkpoint --golden golden.csv --out monday.html",
    ),
    "switch": (
        "switch ./my-checkpoint ./my-next-checkpoint",
        "switch ./old ./new --corpus texts.jsonl --golden golden.csv --threshold .7",
    ),
    "audit": (
        "audit ./my-checkpoint",
        "audit ./my-checkpoint --profile standard --corpus sts=sts-dev.csv --corpus wikipedia=wiki.txt",
        "audit ./my-checkpoint --policy release.toml",
    ),
    "compare": ("compare ./my-checkpoint ./my-next-checkpoint", "compare previous ./chroma"),
    "gate": ("gate latest --policy release.toml",),
    "token": ("token ./my-checkpoint gambia '##ing'",),
    "impact": ("impact ./my-checkpoint --data ./beir-folder --remedies",),
    "tempscale": ("tempscale ./my-checkpoint --corpus sts=sts-dev.csv",),
    "against": ('against ./my-checkpoint "a text" "another text"',),
    "show": ("show", "show ./my-checkpoint --full"),
    "report": ("report latest --out page.html",),
    "index": ("index --out index.html",),
    "list": ("list audits", "list measures"),
    "query": ("query", "query worst-tokens", 'query "SELECT count(*) FROM audit" --format csv'),
    "scores import": ("scores import mteb-results.json",),
    "scores list": ("scores list",),
    "scores correlate": ("scores correlate",),
    "screen": ("screen texts.jsonl",),
    "filter": ("filter latest --out tokens.json",),
    "mitigate": ("mitigate ./my-checkpoint --out ./without-sticky-tokens",),
    "apply-temperature": ("apply-temperature ./my-checkpoint --tau 0.9 --out ./cooler",),
    "watch": ("watch watch.toml",),
    "accept": ('accept ./my-checkpoint --reason "known, mended next week"',),
    "setup-server": ("setup-server",),
    "worker": ("worker",),
    "doctor": ("doctor", "doctor ./my-checkpoint"),
    "ingest": ("ingest sts sts-dev.csv",),
    "export": ("export ./for-dashboards",),
    "prune": ("prune --dry-run",),
    "upgrade": ("upgrade",),
}
