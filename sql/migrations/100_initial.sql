-- The tables that no audit computes: the log, what people import and accept, and figures that papers published.
-- All others are created from the row classes in embaudit/ (sql/schema.sql lists them). Once this is released, a change
-- is a file with the next number. Warehouses from before it, with migrations 1 to 26, have these tables already.

CREATE TABLE IF NOT EXISTS audit (
    audit_id          VARCHAR PRIMARY KEY,   -- by content: the same question has the same id
    checkpoint_id     VARCHAR NOT NULL,
    profile           VARCHAR NOT NULL,
    settings          JSON NOT NULL,
    seed              BIGINT NOT NULL,
    device            VARCHAR NOT NULL,
    dtype             VARCHAR NOT NULL,
    embaudit_version  VARCHAR NOT NULL,
    libraries         JSON NOT NULL,
    started           TIMESTAMPTZ NOT NULL,
    finished          TIMESTAMPTZ,
    seconds           DOUBLE,
    status            VARCHAR NOT NULL,      -- published | failed
    reason            VARCHAR                -- why it failed
);

CREATE TABLE IF NOT EXISTS measure_run (
    audit_id          VARCHAR NOT NULL,
    measure           VARCHAR NOT NULL,
    measure_key       VARCHAR NOT NULL,      -- cache key: checkpoint, inputs, settings, dtype, device kind, seed, version
    version           INTEGER NOT NULL,
    settings          JSON NOT NULL,
    started           TIMESTAMPTZ,
    seconds           DOUBLE,                -- null where every part came from the cache
    encodes           BIGINT,                -- texts that went through the checkpoint for this result
    status            VARCHAR NOT NULL,
    libraries         JSON,                  -- versions of the packages that it was computed with, whenever that was
    PRIMARY KEY (audit_id, measure)
);

CREATE TABLE IF NOT EXISTS expectation_result (
    audit_id          VARCHAR NOT NULL,
    table_name        VARCHAR NOT NULL,
    shard             INTEGER NOT NULL,
    expectation       VARCHAR NOT NULL,
    column_name       VARCHAR NOT NULL,      -- '' where the expectation is about the table
    kwargs            JSON NOT NULL,
    severity          VARCHAR NOT NULL,      -- critical blocks publishing, warning is reported
    success           BOOLEAN NOT NULL,
    raised_exception  BOOLEAN NOT NULL,
    observed          VARCHAR,
    unexpected_count  BIGINT,
    examples          JSON,                  -- keys of the first rows that fail
    PRIMARY KEY (audit_id, table_name, shard, expectation, column_name, kwargs)
);

-- Which rows of which audit maintenance has deleted; summaries and the log never are.
CREATE TABLE IF NOT EXISTS pruning (
    audit_id          VARCHAR NOT NULL,
    table_name        VARCHAR NOT NULL,
    rows              BIGINT NOT NULL,       -- that were deleted
    reason            VARCHAR NOT NULL,      -- the rule, in words
    pruned            TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (audit_id, table_name, pruned)
);

-- What somebody accepted by name: rules that tripped a gate, and figures that got worse.
CREATE TABLE IF NOT EXISTS acceptance (
    audit_id     VARCHAR NOT NULL,
    what         VARCHAR NOT NULL,      -- gate | worse
    against      VARCHAR NOT NULL,      -- hash of the policy; the earlier audit
    item         VARCHAR NOT NULL,      -- the rule; the figure
    accepted_by  VARCHAR NOT NULL,
    reason       VARCHAR NOT NULL,
    accepted     TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (audit_id, what, against, item)
);

-- One score of one checkpoint on one part of a task (MTEB's words: split and subset).
CREATE TABLE IF NOT EXISTS downstream_score (
    checkpoint        VARCHAR NOT NULL,      -- as the file names it
    revision          VARCHAR NOT NULL,      -- '' where the file names none
    task              VARCHAR NOT NULL,
    split             VARCHAR NOT NULL,      -- test where the file names none
    subset            VARCHAR NOT NULL,      -- default where the file names none
    score             DOUBLE NOT NULL,
    metric            VARCHAR,               -- main_score where MTEB's file does not name it
    origin            VARCHAR NOT NULL,      -- the file
    imported          TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (checkpoint, revision, task, split, subset)
);

-- Facts of the papers, to stand beside an audit's own figures, never of this program.
CREATE TABLE IF NOT EXISTS published_figure (
    checkpoint        VARCHAR NOT NULL,      -- hub id, or the name that the paper uses
    measure           VARCHAR NOT NULL,      -- socm_mean, u, reference_scanned, reference_candidates, reference_sticky, reference_cutoff
    corpus            VARCHAR NOT NULL,      -- as embaudit calls it; '' where the figure is of no corpus
    value             DOUBLE NOT NULL,
    source            VARCHAR NOT NULL,
    PRIMARY KEY (checkpoint, measure, corpus)
);

INSERT INTO published_figure
FROM (
    -- Average SOCM: 1 000 Wikipedia sentences, 1 000 MS MARCO passages, 50 000 queries with a hard negative.
    SELECT checkpoint, 'socm_mean', corpus, value, 'arXiv 2604.27398'
    FROM (
        UNPIVOT (
            SELECT * FROM (VALUES
                ('bert-base-uncased', 0.396, 0.491, 0.480),
                ('h-tomo/unsup-simcse-bert-base-uncased-mean', 0.193, 0.269, 0.257),
                ('intfloat/e5-base-v2', 0.029, 0.043, 0.036),
                ('thenlper/gte-base', 0.018, 0.025, 0.017),
                ('microsoft/MiniLM-L12-H384-uncased', 0.242, 0.289, 0.340),
                ('sentence-transformers/all-MiniLM-L12-v2', 0.313, 0.348, 0.330),
                ('intfloat/e5-small-v2', 0.099, 0.085, 0.087),
                ('thenlper/gte-small', 0.055, 0.055, 0.048),
                ('microsoft/mpnet-base', 0.117, 0.106, 0.129),
                ('sentence-transformers/all-mpnet-base-v2', 0.100, 0.094, 0.093),
                ('nomic-ai/nomic-bert-2048', 0.139, 0.110, 0.131),
                ('nomic-ai/nomic-embed-text-v1.5', 0.122, 0.133, 0.104)
            ) AS published (checkpoint, wikipedia, msmarco, "msmarco-hard-negatives")
        ) ON COLUMNS(* EXCLUDE (checkpoint)) INTO NAME corpus VALUE value
    ) AS figure
    UNION ALL
    -- Spearman's rho with the score on MTEB (eng, v2), over all twelve.
    VALUES
        ('(12 checkpoints)', 'spearman_socm', '', -0.678, 'arXiv 2604.27398: MTEB (eng, v2), p = 0.015, n = 12'),
        ('(12 checkpoints)', 'spearman_spread', '', -0.622, 'arXiv 2604.27398: MTEB (eng, v2), n = 12')
    UNION ALL
    -- Sticky tokens by the published code: u, tokens that pass its filter, shortlist, what its threshold flags, the shortlist's cutoff.
    SELECT checkpoint, measure, '', value, 'arXiv 2507.18171'
    FROM (
        UNPIVOT (
            SELECT * FROM (VALUES
                ('sentence-transformers/sentence-t5-base', 0.7959210872650146::DOUBLE, 32097::DOUBLE, 642::DOUBLE, 21::DOUBLE, 56.085167079999984::DOUBLE),
                ('sentence-transformers/sentence-t5-large', 0.7633505463600159, 32097, 642, 30, 49.076264639999984),
                ('sentence-transformers/all-MiniLM-L6-v2', 0.1998460739850998, 23699, 474, 21, 49.204199200000005),
                ('BAAI/bge-base-en-v1.5', 0.5253965854644775, 23699, 474, 20, 33.748423280000004),
                ('BAAI/bge-small-en-v1.5', 0.5693618655204773, 23699, 474, 18, 57.65861280000001),
                ('sentence-transformers/all-mpnet-base-v2', 0.18763725459575653, 23700, 474, 24, 22.803800880000004),
                ('sentence-transformers/sentence-t5-xl', 0.7167261242866516, 32097, 642, 34, 28.52821592),
                ('intfloat/e5-small', 0.8306435346603394, 23699, 474, 17, 31.177416640000033),
                ('intfloat/e5-base', 0.7430481314659119, 23699, 474, 11, 38.23797840000001),
                ('intfloat/e5-large', 0.7311262488365173, 23699, 474, 21, 27.73838624),
                ('BAAI/bge-large-en-v1.5', 0.5716012716293335, 23699, 474, 15, 28.019785360000004),
                ('sentence-transformers/gtr-t5-base', 0.515497624874115, 32097, 642, 16, 42.89543456),
                ('thenlper/gte-base', 0.7647284269332886, 23699, 474, 18, 45.630350240000006),
                ('thenlper/gte-small', 0.7874081134796143, 23699, 474, 15, 51.899770800000006),
                ('Alibaba-NLP/gte-base-en-v1.5', 0.3730173707008362, 23699, 474, 20, 20.26227416000001),
                ('sentence-transformers/gtr-t5-large', 0.5576757788658142, 32097, 642, 14, 42.8975686),
                ('thenlper/gte-large', 0.778849720954895, 23699, 474, 18, 50.856194000000016),
                ('Alibaba-NLP/gte-large-en-v1.5', 0.5389794111251831, 23699, 474, 17, 41.76180748),
                ('sentence-transformers/gtr-t5-xl', 0.48241105675697327, 32097, 642, 15, 34.81474339999998),
                ('GritLM/GritLM-7B', 0.6271421313285828, 31747, 635, 17, 45.52804216),
                ('sentence-transformers/sentence-t5-xxl', 0.7361505031585693, 32097, 642, 22, 33.405789559999974),
                ('princeton-nlp/sup-simcse-bert-base-uncased', 0.5866492390632629, 23699, 474, 22, 36.05251384000002),
                ('princeton-nlp/sup-simcse-bert-large-uncased', 0.4512394964694977, 23699, 474, 11, 49.98127328),
                ('princeton-nlp/sup-simcse-roberta-base', 0.8783459067344666, 49894, 998, 27, 30.05448302),
                ('princeton-nlp/sup-simcse-roberta-large', 0.4994933307170868, 49894, 998, 25, 34.98779733999999),
                ('sentence-transformers/gtr-t5-xxl', 0.477371484041214, 32097, 642, 7, 31.42300628),
                ('intfloat/e5-mistral-7b-instruct', 0.73544925, 31747, 635, 31, 47.297),
                ('nomic-ai/nomic-embed-text-v1.5', 0.41667187213897705, 23699, 474, 9, 43.047631120000005),
                ('nomic-ai/nomic-embed-text-v1', 0.3359900414943695, 23699, 474, 12, 35.63078936),
                ('Salesforce/SFR-Embedding-Mistral', 0.6806461215019226, 31716, 635, 46, 41.0228861),
                ('Salesforce/SFR-Embedding-2_R', 0.7264263033866882, 31716, 444, 2, 21.3491443),
                ('hkunlp/instructor-base', 0.8372758626937866, 32097, 642, 12, 53.60806064),
                ('Alibaba-NLP/gte-Qwen2-7B-instruct', 0.25938424468040466, 147848, 2957, 103, 19.584761439999994),
                ('Alibaba-NLP/gte-Qwen2-1.5B-instruct', 0.35099348425865173, 147848, 2326, 5, 20.172669219999978),
                ('WhereIsAI/UAE-Large-V1', 0.5052046179771423, 23699, 474, 14, 22.126666480000004),
                ('hkunlp/instructor-xl', 0.5544099807739258, 32097, 642, 8, 59.36185648),
                ('hkunlp/instructor-large', 0.8144151568412781, 32097, 642, 32, 45.112504039999976),
                ('jinaai/jina-embeddings-v3', 0.5281136499882918, 249976, 5000, 40, 35.181472),
                ('HIT-TMG/KaLM-embedding-multilingual-mini-instruct-v1', 0.8565026845860017, 147848, 2957, 27, 69.97700201999999),
                ('HIT-TMG/KaLM-embedding-multilingual-mini-instruct-v1.5', 0.8523245180666349, 147848, 2957, 31, 46.08824766)
            ) AS published (checkpoint, u, reference_scanned, reference_candidates, reference_sticky, reference_cutoff)
        ) ON COLUMNS(* EXCLUDE (checkpoint)) INTO NAME measure VALUE value
    ) AS figure
) WHERE NOT EXISTS (FROM published_figure);
