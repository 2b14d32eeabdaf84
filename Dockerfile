# embaudit on a CPU, without root: docker build --build-arg TORCH_INDEX=ADDRESS -t embaudit .
# TORCH_INDEX is the address of PyTorch's CPU builds; without it, CUDA's libraries come along (gigabytes).
FROM python:3.12-slim AS build
ARG TORCH_INDEX=""
WORKDIR /source
COPY pyproject.toml setup.py MANIFEST.in requirements.lock README.md LICENSE ./
COPY embaudit embaudit
COPY flows flows
COPY tasks tasks
COPY sql sql
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} -c requirements.lock ".[packaged]"

FROM python:3.12-slim
COPY --from=build /venv /venv
RUN useradd --create-home --uid 10001 auditor && mkdir /audits && chown auditor /audits
USER auditor
WORKDIR /audits
ENV PATH=/venv/bin:$PATH EMBAUDIT_HOME=/audits/.embaudit
VOLUME /audits
ENTRYPOINT ["embaudit"]
CMD ["--help"]
