# What a script on EMR does; the common functions come before it.
# shellcheck shell=bash

readonly SPARK_FOLDER=$ROOT/usr/lib/spark
readonly DEFAULTS=$ROOT/etc/spark/conf/spark-defaults.conf
readonly BEGIN_MARK='# begin of spark-elastic'
readonly END_MARK='# end of spark-elastic'

# Spark is installed after bootstrap actions: waits for it, for this many seconds.
wait_for_spark() {
  local left=${SPARK_ELASTIC_WAIT_S:-3600} found
  while found=("$SPARK_FOLDER"/jars/spark-core_*.jar) && [ ${#found[@]} -eq 0 ]; do
    [ "$left" -gt 0 ] || fail "there is no Spark in $SPARK_FOLDER after ${SPARK_ELASTIC_WAIT_S:-3600} s:" \
      "add the application Spark to the cluster"
    left=$((left - 1))
    sleep 1
  done
}

place() {
  place_jar "$SPARK_FOLDER/jars" "$SPARK_FOLDER/RELEASE"
}

# value_of KEY TEXT: prints what spark-defaults.conf has for a key; the last line counts.
value_of() {
  sed -n "s/^[[:space:]]*${1//./\\.}[[:space:]=:][[:space:]=:]*\(.*[^[:space:]]\)[[:space:]]*\$/\1/p" <<<"$2" | tail -n 1
}

configure() {
  local text plugins
  [ -f "$DEFAULTS" ] || fail "there is no $DEFAULTS: this step needs a cluster with Spark, after it was installed"
  text=$(sed "/^$BEGIN_MARK\$/,/^$END_MARK\$/d" "$DEFAULTS")
  plugins=$(value_of spark.plugins "$text")
  case ,$plugins, in
    *,"$PLUGIN",*) ;;
    *) plugins=${plugins:+$plugins,}$PLUGIN ;;
  esac
  text+=$'\n'"$BEGIN_MARK"$'\n'"spark.plugins  $plugins"
  if [ -z "$(value_of spark.elastic.schedulerMode "$text")$(value_of spark.elastic.scheduler-mode "$text")" ]; then
    text+=$'\n'"spark.elastic.schedulerMode  $MODE"
  fi
  text+=$'\n'"spark.elastic.python  $TOP/bin/python"$'\n'"$END_MARK"
  write_file "$DEFAULTS" "$text"
}

take_back() {
  :
}

main() {
  local action=${1:-bootstrap}
  # EMR runs bootstrap actions and steps as hadoop, who may do this.
  if [ -z "$ROOT" ] && [ "$(id -u)" -ne 0 ] && sudo -n true 2>/dev/null; then
    exec sudo -E bash "${BASH_SOURCE[0]}" "$@"
  fi
  begin
  case $action in
    bootstrap | configure)
      find_python "a bootstrap action before this one has to do: sudo dnf install -y python3.11 python3.11-pip" \
        python3.13 python3.12 python3.11 python3.10 python3
      install all
      ;;
    place) ;;
    *) fail "'$action' is nothing that this script does: bootstrap (if nothing is named), place, configure" ;;
  esac
  case $action in
    bootstrap)
      if ! cmp -s "${BASH_SOURCE[0]}" "$TOP/bootstrap.sh"; then
        CHANGED=true
        cp "${BASH_SOURCE[0]}" "$TOP/bootstrap.sh.part"
        mv "$TOP/bootstrap.sh.part" "$TOP/bootstrap.sh"
      fi
      finish
      say "waits in the background for Spark, to put the jar into $SPARK_FOLDER/jars"
      # EMR continues once no process holds this script's output; the lock is for the one that follows.
      setsid bash "$TOP/bootstrap.sh" place </dev/null >/dev/null 2>&1 3>&- 9>&- &
      ;;
    place)
      # No other process has to wait while this one does.
      exec 9>&-
      wait_for_spark
      begin
      place
      finish
      ;;
    configure)
      wait_for_spark
      place
      configure
      finish
      ;;
  esac
}
