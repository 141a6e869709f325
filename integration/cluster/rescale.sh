#!/bin/sh
# What a client that was written for Flink does: read the bounds of a job, edit them, put them back.
#
# usage: rescale.sh UI JOB UPPER
#   UI     address of the application's Spark UI
#   JOB    id of the streaming query, without dashes, as a job's is in Flink
#   UPPER  most partitions that it may have from now on
set -eu

requirements="$1/elastic/api/v1/jobs/$2/resource-requirements"
vertex=$(curl --silent --show-error --fail "$1/elastic/api/v1/queries/$2" | sed 's/.*"vertexIds":{"shuffle":"\([0-9a-f]*\)".*/\1/')
bounds=$(curl --silent --show-error --fail "$requirements")
edited=$(printf '%s' "$bounds" | sed "s/\(\"$vertex\":{[^}]*\"upperBound\":\)-\{0,1\}[0-9]*/\1$3/")
curl --silent --show-error --fail-with-body -X PUT -H 'Content-Type: application/json' -d "$edited" "$requirements"
