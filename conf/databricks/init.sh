#!/usr/bin/env bash

# spark-elastic 0.1.0 on Databricks: cluster-scoped init script.
# Made by `spark-elastic init-script databricks`; make it anew rather than change it.
#
# On every node it puts the jar where Spark's own are (/databricks/jars). On the driver's node it also
# installs the policy engine, under /opt/spark-elastic/0.1.0, and writes the settings into
# /databricks/driver/conf, last of all. Executors need nothing of it; the jar is on their nodes in case
# this runtime hands them spark.plugins before the plugin has taken its own name out.
#
# Store it on a Unity Catalog volume or as a workspace file, and name it under Compute > Advanced > Init
# scripts. It writes to /var/log/spark-elastic/databricks.log and to its output, which Databricks
# keeps with the cluster's logs.
#
# Not run on Databricks yet. Suspected there:
#   - Standard (formerly shared) access mode: the script, the jar and their folder need an entry in the
#     metastore's allowlist. Queries run in the driver for clients of Spark Connect; foreachBatch is
#     decided about as it is on any Connect server. Where users may not reach the driver's UI, there is no
#     REST API for them.
#   - Photon plans stages of its own: a batch query may keep Databricks' numbers of partitions. Streaming
#     queries that Photon runs are rescaled as others, as far as their state is Spark's own.
#   - A runtime is a build of Spark that differs from Apache's: the plugin compares, and leaves off what does
#     not fit. Runtime 17.3 is reported to have javax.servlet where Apache's Spark 4 has jakarta.servlet
#     (github.com/dataflint/spark/pull/71): the REST API and the Elastic tab would be off, the rest works.
#     `spark-elastic doctor --live` asks a running application; where there is no REST API, the driver's log
#     says it: "spark-elastic: continues without ...".
#
# It installs with pip, from the index that pip is set up for. A second run changes nothing.
# If it fails, it says so in /var/log/spark-elastic/databricks.log and ends with 0: the cluster starts, with plain Spark.

readonly VERSION=0.1.0
readonly FINGERPRINT=8f071d7514e71177753188a45451234dea9fa999cd774fc5563079f454c565a0
readonly PLUGIN=org.apache.spark.elastic.ElasticPlugin
readonly MODE=reactive
readonly STRICT=false
readonly FROM=''
readonly LOG_FILE=/var/log/spark-elastic/databricks.log
readonly HOME_FOLDER=/opt/spark-elastic/0.1.0
readonly CHECKSUMS=''
readonly REQUIREMENTS=spark-elastic==0.1.0

# A machine that is laid out elsewhere, for tests.
readonly ROOT=${SPARK_ELASTIC_ROOT:-}
readonly LOG=$ROOT$LOG_FILE
readonly TOP=$ROOT$HOME_FOLDER
readonly INSTALLED=$TOP/installed.sha256

CHANGED=false
TOLD=false
STAGE=''
PYTHON=''
SPARK=''
SCALA=''

say() {
  local line
  line="$(date -u +%Y-%m-%dT%H:%M:%SZ) spark-elastic: $*"
  # Not where a command substitution would take it for its result.
  printf '%s\n' "$line" >&3
  { mkdir -p "${LOG%/*}" && printf '%s\n' "$line" >>"$LOG"; } 2>/dev/null || true
}

fail() {
  TOLD=true
  say "error: $*"
  exit 1
}

# Commands of others write into the log alone, and read nothing.
quietly() {
  mkdir -p "${LOG%/*}"
  "$@" </dev/null >>"$LOG" 2>&1
}

on_error() {
  local status=$1 line=$2 command=$3
  "$TOLD" || say "error: line $line ended with $status: $command"
  TOLD=true
}

on_exit() {
  local status=$1
  trap - EXIT ERR
  set +e
  [ -z "$STAGE" ] || rm -rf "$STAGE"
  if [ "$status" -ne 0 ]; then
    "$TOLD" || say "error: ended with $status"
    take_back
    if "$STRICT"; then
      say "ends with $status, since it was made with --strict"
      exit "$status"
    fi
    say "continues without spark-elastic: Spark starts as if this script were not there"
    exit 0
  fi
  exit 0
}

begin() {
  set -Eeuo pipefail
  exec 3>&1
  trap 'on_error "$?" "$LINENO" "$BASH_COMMAND"' ERR
  trap 'on_exit "$?"' EXIT
  umask 022
  shopt -s nullglob
  mkdir -p "$TOP"
  # One at a time: the second finds what the first has done.
  if command -v flock >/dev/null; then
    exec 9>"$TOP/lock"
    flock 9
  fi
}

finish() {
  if "$CHANGED"; then
    say "done: spark-elastic $VERSION is installed"
  else
    say "nothing to do: spark-elastic $VERSION is installed already"
  fi
}

# find_python ADVICE PROGRAM...: sets PYTHON to the first that can run the policy engine.
find_python() {
  local advice=$1 program found='' version
  shift
  for program in "$@"; do
    program=$(command -v "$program") || continue
    version=$("$program" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
    if [ "${version%%.*}" -gt 3 ] || { [ "${version%%.*}" -eq 3 ] && [ "${version#*.}" -ge 10 ]; }; then
      "$program" -m pip --version >/dev/null 2>&1 || fail "$program has no pip: $advice"
      PYTHON=$program
      return
    fi
    found+=" $program ($version)"
  done
  fail "the policy engine needs Python 3.10 or later, and there is only${found:- none}: $advice"
}

# look_at_spark JARS FILE: sets SPARK and SCALA by the names of the runtime's jars, or by the file with its version.
look_at_spark() {
  local jars=$1 file=$2 jar twelve thirteen
  SPARK='' SCALA=''
  for jar in "$jars"/spark-core_*.jar; do
    if [[ ${jar##*/} =~ ^spark-core_([0-9]+\.[0-9]+)-([0-9]+\.[0-9]+)\. ]]; then
      SCALA=${BASH_REMATCH[1]} SPARK=${BASH_REMATCH[2]}
    fi
  done
  if [ -z "$SPARK" ] && [ -r "$file" ] && [[ $(<"$file") =~ ([0-9]+\.[0-9]+)\.[0-9]+ ]]; then
    SPARK=${BASH_REMATCH[1]}
  fi
  if [ -z "$SCALA" ]; then
    # Builds that rename their jars keep Scala's version in most names.
    twelve=("$jars"/*_2.12[-_.]*.jar) thirteen=("$jars"/*_2.13[-_.]*.jar)
    if [ ${#thirteen[@]} -gt ${#twelve[@]} ]; then
      SCALA=2.13
    elif [ ${#twelve[@]} -gt 0 ]; then
      SCALA=2.12
    fi
  fi
  [ -n "$SPARK" ] || fail "which Spark this is cannot be told: $jars has no spark-core_*.jar, and $file no version"
  [ -n "$SCALA" ] || fail "which Scala this is cannot be told by the names of the jars in $jars"
}

# bring FILE: takes one file from FROM.
bring() {
  local file=$1 folder=${FROM%/}
  case $folder in
    s3:*)
      command -v aws >/dev/null || fail "$FROM cannot be read: there is no aws on PATH"
      quietly aws s3 cp "$folder/$file" "$STAGE/files/$file" || fail "$folder/$file cannot be read, see $LOG"
      ;;
    *)
      folder=${folder#file:}
      case $folder in dbfs:*) folder=/dbfs/${folder#dbfs:} ;; esac
      folder=$ROOT/${folder#"${folder%%[!/]*}"}
      quietly cp "$folder/$file" "$STAGE/files/$file" || fail "$folder/$file cannot be read, see $LOG"
      ;;
  esac
}

# stage all|ours: fills STAGE with all files to install, or with ours alone, and checks them.
stage() {
  local wanted=$1 sum file found hashes=()
  STAGE=$(mktemp -d)
  mkdir "$STAGE/files"
  if [ "$wanted" = ours ]; then
    grep '^spark-elastic==' <<<"$REQUIREMENTS" >"$STAGE/requirements.txt"
    hashes=(--no-deps)
  else
    printf '%s\n' "$REQUIREMENTS" >"$STAGE/requirements.txt"
  fi
  if [ -z "$FROM" ]; then
    [ -z "$CHECKSUMS" ] || hashes+=(--require-hashes)
    say "downloads spark-elastic $VERSION from pip's index"
    quietly "$PYTHON" -m pip download --disable-pip-version-check --only-binary=:all: "${hashes[@]}" \
      --dest "$STAGE/files" --requirement "$STAGE/requirements.txt" || fail "the download failed, see $LOG"
    return
  fi
  say "takes spark-elastic $VERSION from $FROM"
  while read -r sum file; do
    case $wanted:$file in ours:spark_elastic-* | ours:spark-elastic_* | all:*) ;; *) continue ;; esac
    bring "$file"
    found=$(sha256sum <"$STAGE/files/$file")
    [ "${found%% *}" = "$sum" ] ||
      fail "$file has the SHA-256 checksum ${found%% *}, and this script was made for $sum: put that file" \
        "into $FROM, or make the script anew from the files there"
  done <<<"$CHECKSUMS"
}

# Takes the jars out of STAGE, those that stand alone before those of the wheel.
unpack_jars() {
  local part=$TOP/jars.part wheels=("$STAGE"/files/spark_elastic-*.whl) jar
  rm -rf "$part"
  mkdir "$part"
  "$PYTHON" - "${wheels[0]}" "$part" <<'PYTHON'
import pathlib, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    for name in wheel.namelist():
        if name.startswith("spark_elastic/jars/") and name.endswith(".jar"):
            pathlib.Path(sys.argv[2], name.rsplit("/", 1)[1]).write_bytes(wheel.read(name))
PYTHON
  for jar in "$STAGE"/files/*.jar; do cp "$jar" "$part/"; done
  rm -rf "$TOP/jars"
  mv "$part" "$TOP/jars"
}

# Installs the policy engine into a folder of its own: what the platform's Python has stays as it is.
install_engine() {
  local part=$TOP/engine.part hashes=()
  [ -z "$CHECKSUMS" ] || hashes=(--require-hashes)
  rm -rf "$part"
  quietly "$PYTHON" -m pip install --disable-pip-version-check --no-index --find-links "$STAGE/files" \
    "${hashes[@]}" --no-compile --target "$part" --requirement "$STAGE/requirements.txt" ||
    fail "pip could not install the policy engine, see $LOG"
  rm -rf "$TOP/engine"
  mv "$part" "$TOP/engine"
  mkdir -p "$TOP/bin"
  cat >"$TOP/bin/python.part" <<SH
#!/bin/sh
PYTHONPATH='$TOP/engine'\${PYTHONPATH:+:\$PYTHONPATH}
export PYTHONPATH
exec '$PYTHON' "\$@"
SH
  chmod 755 "$TOP/bin/python.part"
  mv "$TOP/bin/python.part" "$TOP/bin/python"
  local installed
  installed=$("$TOP/bin/python" -c 'import spark_elastic; print(spark_elastic.__version__)' 2>>"$LOG") || installed=none
  [ "$installed" = "$VERSION" ] || fail "$TOP/bin/python has spark-elastic $installed after it was installed"
}

# install all|ours: fills TOP; does nothing if this very script has put everything there already, unchanged.
install() {
  local wanted=$1 folders=("$TOP/jars")
  if [ "$(head -n 1 "$INSTALLED" 2>/dev/null)" = "# $FINGERPRINT $wanted" ] &&
    sha256sum --check --status "$INSTALLED"; then
    return
  fi
  CHANGED=true
  stage "$wanted"
  unpack_jars
  if [ "$wanted" = all ]; then
    install_engine
    folders+=("$TOP/engine" "$TOP/bin")
    say "installed the policy engine for $PYTHON in $TOP"
  fi
  {
    printf '# %s %s\n' "$FINGERPRINT" "$wanted"
    find "${folders[@]}" -type f ! -name '*.pyc' -exec sha256sum {} +
  } >"$INSTALLED.part"
  # Last, and at once: a run that ends before it is done again.
  mv "$INSTALLED.part" "$INSTALLED"
}

# place_jar JARS FILE: puts the jar for this runtime's Spark onto its class path, and takes other versions away.
place_jar() {
  local jars=$1 file=$2 name known='' jar
  look_at_spark "$jars" "$file"
  name=spark-elastic_${SPARK}_$SCALA-$VERSION.jar
  if [ ! -f "$TOP/jars/$name" ]; then
    for jar in "$TOP"/jars/spark-elastic_*.jar; do
      jar=${jar##*/spark-elastic_}
      known+=" ${jar%%-*}"
    done
    fail "spark-elastic $VERSION has no jar for Spark $SPARK with Scala $SCALA, only for${known:- none}:" \
      "take a runtime with one of these, or a newer spark-elastic"
  fi
  if ! cmp -s "$TOP/jars/$name" "$jars/$name"; then
    CHANGED=true
    cp "$TOP/jars/$name" "$jars/.$name.part"
    mv "$jars/.$name.part" "$jars/$name"
    say "put $name into $jars, for Spark $SPARK with Scala $SCALA"
  fi
  for jar in "$jars"/spark-elastic_*.jar; do
    [ "${jar##*/}" != "$name" ] || continue
    CHANGED=true
    rm -f "$jar"
    say "removed ${jar##*/} from $jars"
  done
}

# write_file FILE TEXT: replaces a file at once, if it has another text.
write_file() {
  local file=$1 text=$2
  [ ! -f "$file" ] || [ "$(<"$file")" != "$text" ] || return 0
  CHANGED=true
  mkdir -p "${file%/*}"
  [ ! -f "$file" ] || cp -p "$file" "$file.part"
  printf '%s\n' "$text" >"$file.part"
  mv "$file.part" "$file"
  say "wrote $file"
}

readonly DATABRICKS=$ROOT/databricks
# Of two files with one setting, the one whose name sorts first counts.
readonly CONF=$DATABRICKS/driver/conf/00-spark-elastic.conf

# set_elsewhere KEY: prints what counts for it of the driver's other files.
set_elsewhere() {
  local key=$1 file
  for file in "$DATABRICKS"/driver/conf/*.conf; do
    [ "$file" != "$CONF" ] || continue
    sed -nE '/^[[:space:]]*(#|\/\/)/d
      s/(.*[^[:alnum:].]|^)'"${key//./\\.}"'"?[[:space:]]*[=:][[:space:]]*"([^"]*)".*/\2/p' "$file" | tail -n 1
  done | sed -n 1p
}

configure() {
  local plugins mode lines
  plugins=$(set_elsewhere spark.plugins)
  case ,$plugins, in
    *,"$PLUGIN",*) ;;
    *) plugins=${plugins:+$plugins,}$PLUGIN ;;
  esac
  lines="  \"spark.plugins\" = \"$plugins\""
  mode=$(set_elsewhere spark.elastic.schedulerMode)$(set_elsewhere spark.elastic.scheduler-mode)
  [ -n "$mode" ] || lines+=$'\n'"  \"spark.elastic.schedulerMode\" = \"$MODE\""
  lines+=$'\n'"  \"spark.elastic.python\" = \"$TOP/bin/python\""
  write_file "$CONF" "[driver] {"$'\n'"$lines"$'\n'"}"
}

# Settings that name a plugin whose jar is not there would keep the driver from starting.
take_back() {
  [ ! -f "$CONF" ] || { rm -f "$CONF" && say "removed $CONF"; }
}

main() {
  local wanted=all
  begin
  case ${DB_IS_DRIVER:-} in
    TRUE) ;;
    FALSE) wanted=ours ;;
    *) fail "DB_IS_DRIVER is '${DB_IS_DRIVER:-}', not TRUE or FALSE: this is a script for nodes of Databricks" ;;
  esac
  find_python "take a Databricks Runtime from 14.3 on" "$DATABRICKS/python/bin/python" python3
  install "$wanted"
  place_jar "$DATABRICKS/jars" "$DATABRICKS/spark/VERSION"
  # Last: the settings turn the plugin on once everything it needs is in place.
  [ "$wanted" = ours ] || configure
  finish
}

main "$@"
