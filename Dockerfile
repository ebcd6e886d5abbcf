# ssn for CPUs. Build and use it:
#
#     docker build --tag ssn .
#     docker run --rm --volume "$PWD:/data" ssn predict /opt/ssn/demo/model.safetensors /opt/ssn/demo/images --out predictions
#     docker run --rm --volume "$PWD:/data" --publish 127.0.0.1:8000:8000 ssn view predictions --no-open --host 0.0.0.0 --allow-remote --port 8000
#
# docs/guides/installation.md has the variant for NVIDIA GPUs.
FROM rust:1.95-bookworm AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 python3-pip python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN tools/release.sh && mkdir /opt/ssn && tar -xf dist/ssn-*.tar.gz -C /opt/ssn --strip-components 1

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libstdc++6 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/ssn /opt/ssn
ENV PATH=/opt/ssn/bin:$PATH
WORKDIR /data
ENTRYPOINT ["ssn"]
CMD ["--help"]
