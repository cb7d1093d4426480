# The LangGraph server with Mneme's graphs; compose.yaml runs it. docs/scaling.md says what of it was tried.
FROM python:3.11.14-slim-bookworm

# Packages of model providers beside Ollama, such as langchain-openai.
ARG PROVIDERS=""

ENV PYTHONUNBUFFERED=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    LANGGRAPH_CLI_NO_ANALYTICS=1 \
    LANGGRAPH_NO_VERSION_CHECK=1

RUN --mount=type=bind,target=/src,rw \
    pip install --constraint /src/constraints.txt "/src[studio,postgres,mcp,providers]" $PROVIDERS \
    && PIP_CONSTRAINT=/src/constraints.txt mneme embedder install \
    && install -D --mode=644 /src/langgraph.json /app/langgraph.json \
    && useradd --uid 10001 --create-home --home-dir /data mneme

# The server keeps its threads and runs (.langgraph_api) where it is started.
USER mneme
WORKDIR /data
VOLUME /data
EXPOSE 2024

CMD ["langgraph", "dev", "--no-browser", "--no-reload", "--config=/app/langgraph.json", \
     "--host=0.0.0.0", "--port=2024", "--n-jobs-per-worker=64"]
