#!/bin/bash
# Start what Kubernetes asks for: a driver or an executor of Spark, or any other command.
set -eu
role=${1:-}
case $role in
  driver)
    shift
    set -- "$SPARK_HOME/bin/spark-submit" --deploy-mode client \
      --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" "$@"
    ;;
  executor)
    # The options of the JVM are numbered from 0.
    options=()
    for ((number = 0; ; number++)); do
      name=SPARK_JAVA_OPT_$number
      [ -v "$name" ] || break
      options+=("${!name}")
    done
    set -- java "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
      -cp "${SPARK_CONF_DIR:-$SPARK_HOME/conf}:$SPARK_HOME/jars/*:${SPARK_CLASSPATH:-}" \
      org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
      --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
      --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
      --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
    ;;
esac
exec tini -s -- "$@"
