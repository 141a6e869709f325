# What a script on Databricks does; the common functions come before it.
# shellcheck shell=bash

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
