# Worker, beat, Flower and the command line of celery-orchestrator, as an unprivileged user.
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY orchestrator ./orchestrator
RUN pip install --no-cache-dir --prefix=/install ".[flower,redis]"

FROM python:3.12-slim
RUN useradd --system --uid 10001 --create-home orchestrator
COPY --from=build /install /usr/local
WORKDIR /app
COPY --chown=orchestrator celeryconfig.py ./
COPY --chown=orchestrator activities ./activities
USER orchestrator
ENV PYTHONUNBUFFERED=1
ENTRYPOINT ["celery", "-A", "orchestrator"]
CMD ["worker", "--loglevel", "INFO"]
