{{/*
Names and labels. A service's name has at most 63 characters.
*/}}
{{- define "spark-elastic.name" -}}
{{- .Values.nameOverride | default .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/* From (list $ component): what its pods are selected by. */}}
{{- define "spark-elastic.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* From (list $ component): the labels of its objects. */}}
{{- define "spark-elastic.labels" -}}
{{- $root := index . 0 -}}
{{ include "spark-elastic.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ $root.Chart.Name }}-{{ $root.Chart.Version }}
{{- end }}

{{/* From (list $ component): an object's name and labels. */}}
{{- define "spark-elastic.metadata" -}}
{{- $root := index . 0 -}}
name: {{ include "spark-elastic.name" $root }}-{{ index . 1 }}
namespace: {{ $root.Release.Namespace }}
labels:
  {{- include "spark-elastic.labels" . | nindent 2 }}
{{- end }}

{{- define "spark-elastic.account" -}}
{{- .Values.serviceAccount.name | default (printf "%s-driver" (include "spark-elastic.name" .)) }}
{{- end }}

{{/* Where the driver of a Standalone cluster finds its master. */}}
{{- define "spark-elastic.master" -}}
spark://{{ include "spark-elastic.name" . }}-master{{ if eq .Values.operator "apache" }}-svc{{ end }}:7077
{{- end }}

{{- define "spark-elastic.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Values.sparkVersion }}
{{- end }}

{{/*
Sizes. Spark's 512m and 2g are mebibytes and gibibytes.
*/}}
{{- define "spark-elastic.mebibytes" -}}
{{- $number := . | trimSuffix "m" | trimSuffix "g" | int -}}
{{- if hasSuffix "g" . }}{{ mul $number 1024 }}{{ else }}{{ $number }}{{ end }}
{{- end }}

{{/* From the values of the driver, or of executors: the memory of the container, in MiB. */}}
{{- define "spark-elastic.container-memory" -}}
{{- add (include "spark-elastic.mebibytes" .memory) (include "spark-elastic.mebibytes" .memoryOverhead) }}
{{- end }}

{{/* Slots of a worker: the unit in which an autoscaler counts. */}}
{{- define "spark-elastic.slots" -}}
{{- div .Values.executors.cores (index .Values.sparkConf "spark.task.cpus" | default 1 | int) }}
{{- end }}

{{/*
Settings, as YAML. From (list $ more): the user's take precedence over `more`, and these over those that all have.
*/}}
{{- define "spark-elastic.conf" -}}
{{- $root := index . 0 -}}
{{- $values := $root.Values -}}
{{- $given := dict -}}
{{- range $key, $value := $values.sparkConf -}}
{{- /* Helm reads numbers as fractions, and writes large ones with an exponent. */ -}}
{{- $_ := set $given $key (kindIs "float64" $value | ternary (printf "%.0f" $value) (toString $value)) -}}
{{- end -}}
{{- with index $given "spark.plugins" -}}
{{- $_ := set $given "spark.plugins" (printf "%s,org.apache.spark.elastic.ElasticPlugin" .) -}}
{{- end -}}
{{- $conf := dict
  "spark.plugins" "org.apache.spark.elastic.ElasticPlugin"
  "spark.elastic.schedulerMode" $values.mode
  "spark.elastic.python" "/opt/spark-elastic/bin/python"
  "spark.decommission.enabled" "true"
  "spark.shuffle.io.connectionCreationTimeout" "5s"
  "spark.shuffle.io.connectionTimeout" "30s"
  "spark.dynamicAllocation.enabled" "false"
  "spark.driver.memory" $values.driver.memory
  "spark.executor.cores" (toString $values.executors.cores)
  "spark.executor.memory" $values.executors.memory
-}}
{{- if $values.policy -}}
{{- $_ := set $conf "spark.elastic.policyFile" "/etc/spark-elastic/policy.yaml" -}}
{{- end -}}
{{- if eq $values.mode "adaptive" -}}
{{- $conf = merge $conf (dict
  "spark.elastic.minExecutors" (toString $values.executors.min)
  "spark.elastic.maxExecutors" (toString $values.executors.max)
  "spark.executor.instances" (max 1 $values.executors.min | toString)
  "spark.executor.maxNumFailures" "2147483647"
  "spark.executor.memoryOverhead" $values.executors.memoryOverhead
  "spark.driver.memoryOverhead" $values.driver.memoryOverhead
  "spark.driver.cores" (toString $values.driver.cores)
  "spark.kubernetes.namespace" $root.Release.Namespace
  "spark.kubernetes.container.image" (include "spark-elastic.image" $root)
  "spark.kubernetes.container.image.pullPolicy" $values.image.pullPolicy
  "spark.kubernetes.authenticate.driver.serviceAccountName" (include "spark-elastic.account" $root)
) -}}
{{- range $role, $of := dict "driver" $values.driver "executor" $values.executors -}}
{{- with $of.cpu -}}
{{- $_ := set $conf (printf "spark.kubernetes.%s.request.cores" $role) (toString .) -}}
{{- end -}}
{{- end -}}
{{- with $values.image.pullSecrets -}}
{{- $names := list -}}
{{- range . }}{{ $names = append $names .name }}{{ end -}}
{{- $_ := set $conf "spark.kubernetes.container.image.pullSecrets" (join "," $names) -}}
{{- end -}}
{{- end -}}
{{- merge $given (index . 1) $conf | toYaml -}}
{{- end }}

{{/*
Files in /etc/spark-elastic of the driver, as data of a ConfigMap. A whole folder is mounted, not single files:
Kubernetes renews only folders, so that bounds can change while queries run.
*/}}
{{- define "spark-elastic.files" -}}
{{- with .Values.policy }}
policy.yaml: |
  {{- (kindIs "string" .) | ternary . (toYaml .) | nindent 2 }}
{{- end }}
{{- if and (eq .Values.mode "adaptive") (eq .Values.operator "none") (ne .Values.application.kind "None") }}
executor-pod.yaml: |
  apiVersion: v1
  kind: Pod
  {{- include "spark-elastic.executor-pod" . | nindent 2 }}
{{- end }}
{{- end }}

{{/* From (list indent template argument): a template's text on new lines, or nothing if it is empty. */}}
{{- define "spark-elastic.insert" -}}
{{- with include (index . 1) (index . 2) | trim }}{{ . | nindent (index $ 0) }}{{ end }}
{{- end }}

{{/*
Parts of pods.
*/}}
{{- define "spark-elastic.placement" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* From (list $ component): what all pods have. */}}
{{- define "spark-elastic.pod-metadata" -}}
{{- $values := (index . 0).Values -}}
labels:
  {{- include "spark-elastic.selector" . | nindent 2 }}
  {{- if and (eq (index . 1) "driver") (eq $values.operator "apache") (eq $values.mode "reactive") }}
  # Apache's operator lets only the cluster's pods connect to workers.
  spark.operator/spark-cluster-name: {{ include "spark-elastic.name" (index . 0) }}
  {{- end }}
{{- with $values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "spark-elastic.pod-security" -}}
{{- with .Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "spark-elastic.container-security" -}}
{{- with .Values.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* From (list $ component): volumes, and below where they are; the driver has the files, too. */}}
{{- define "spark-elastic.volumes" -}}
{{- $root := index . 0 -}}
{{- $files := and (eq (index . 1) "driver") (include "spark-elastic.files" $root | trim) -}}
{{- if or $files $root.Values.checkpoints.claim -}}
volumes:
  {{- if $files }}
  - name: spark-elastic
    configMap:
      name: {{ include "spark-elastic.name" $root }}-driver
  {{- end }}
  {{- with $root.Values.checkpoints.claim }}
  - name: checkpoints
    persistentVolumeClaim:
      claimName: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "spark-elastic.mounts" -}}
{{- $root := index . 0 -}}
{{- $files := and (eq (index . 1) "driver") (include "spark-elastic.files" $root | trim) -}}
{{- if or $files $root.Values.checkpoints.claim -}}
volumeMounts:
  {{- if $files }}
  - name: spark-elastic
    mountPath: /etc/spark-elastic
    readOnly: true
  {{- end }}
  {{- if $root.Values.checkpoints.claim }}
  - name: checkpoints
    mountPath: {{ $root.Values.checkpoints.path }}
  {{- end }}
{{- end }}
{{- end }}

{{/* The driver's pod where something else makes it: Spark fills in image, command and resources. */}}
{{- define "spark-elastic.driver-pod" -}}
metadata:
  {{- include "spark-elastic.pod-metadata" (list . "driver") | nindent 2 }}
spec:
  terminationGracePeriodSeconds: {{ .Values.driver.terminationGracePeriodSeconds }}
  {{- include "spark-elastic.insert" (list 2 "spark-elastic.pod-security" .) }}
  {{- include "spark-elastic.insert" (list 2 "spark-elastic.placement" .Values.driver) }}
  containers:
    - name: spark-kubernetes-driver
      {{- include "spark-elastic.insert" (list 6 "spark-elastic.container-security" .) }}
      {{- with .Values.driver.env }}
      env:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- include "spark-elastic.insert" (list 6 "spark-elastic.mounts" (list . "driver")) }}
  {{- include "spark-elastic.insert" (list 2 "spark-elastic.volumes" (list . "driver")) }}
{{- end }}

{{/* The pod of an executor that the driver starts. */}}
{{- define "spark-elastic.executor-pod" -}}
metadata:
  {{- include "spark-elastic.pod-metadata" (list . "executor") | nindent 2 }}
spec:
  automountServiceAccountToken: false
  {{- include "spark-elastic.insert" (list 2 "spark-elastic.pod-security" .) }}
  {{- include "spark-elastic.insert" (list 2 "spark-elastic.placement" .Values.executors) }}
  containers:
    - name: spark-kubernetes-executor
      {{- include "spark-elastic.insert" (list 6 "spark-elastic.container-security" .) }}
      {{- with .Values.executors.env }}
      env:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- include "spark-elastic.insert" (list 6 "spark-elastic.mounts" (list . "executor")) }}
  {{- include "spark-elastic.insert" (list 2 "spark-elastic.volumes" (list . "executor")) }}
{{- end }}

{{/* What the pods of master and workers have, whoever makes them. */}}
{{- define "spark-elastic.daemon" -}}
automountServiceAccountToken: false
# Kubernetes would describe services of the namespace in variables such as SPARK_MASTER_PORT, which Spark's
# daemons read as their own.
enableServiceLinks: false
{{- include "spark-elastic.insert" (list 0 "spark-elastic.pod-security" .) }}
{{- end }}

{{/* Their containers. */}}
{{- define "spark-elastic.daemon-container" -}}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- include "spark-elastic.insert" (list 0 "spark-elastic.container-security" .) }}
{{- end }}

{{/* The container of the master. */}}
{{- define "spark-elastic.master-container" -}}
{{- $memory := add 512 (include "spark-elastic.mebibytes" .Values.master.memory) -}}
{{ include "spark-elastic.daemon-container" . }}
env:
  {{- if eq .Values.operator "none" }}
  - name: POD_IP
    valueFrom:
      fieldRef:
        fieldPath: status.podIP
  {{- end }}
  - name: SPARK_DAEMON_MEMORY
    value: {{ .Values.master.memory }}
  {{- if .Values.checkpoints.claim }}
  # A master that does not know an application ends its executors, and the driver waits for others without end. So
  # what it knows outlasts its pod.
  - name: SPARK_DAEMON_JAVA_OPTS
    value: >-
      -Dspark.deploy.recoveryMode=FILESYSTEM
      -Dspark.deploy.recoveryDirectory={{ .Values.checkpoints.path }}/.{{ include "spark-elastic.name" . }}-master
  {{- end }}
resources:
  requests:
    cpu: {{ .Values.master.cpu }}
    memory: {{ $memory }}Mi
  limits:
    memory: {{ $memory }}Mi
{{- include "spark-elastic.insert" (list 0 "spark-elastic.mounts" (list . "master")) }}
{{- end }}

{{/*
A worker's pod. Apache's operator brings the container's image and command, and gives workers no time to end, so
that no hook could decommission them.
*/}}
{{- define "spark-elastic.worker-pod" -}}
metadata:
  {{- include "spark-elastic.pod-metadata" (list . "worker") | nindent 2 }}
spec:
  {{- include "spark-elastic.daemon" . | nindent 2 }}
  {{- if eq .Values.operator "none" }}
  terminationGracePeriodSeconds: {{ .Values.executors.terminationGracePeriodSeconds }}
  {{- end }}
  {{- include "spark-elastic.insert" (list 2 "spark-elastic.placement" .Values.executors) }}
  containers:
    - name: worker
      {{- include "spark-elastic.daemon-container" . | nindent 6 }}
      {{- if eq .Values.operator "none" }}
      image: {{ include "spark-elastic.image" . }}
      command:
        - /opt/spark/bin/spark-class
        - org.apache.spark.deploy.worker.Worker
      args:
        - --webui-port
        - "8081"
        - {{ include "spark-elastic.master" . }}
      ports:
        - name: ui
          containerPort: 8081
      {{- end }}
      env:
        # One executor to a worker. Its slots, if a task needs one core, are the autoscaler's unit.
        - name: SPARK_WORKER_CORES
          value: {{ .Values.executors.cores | quote }}
        - name: SPARK_WORKER_MEMORY
          value: {{ .Values.executors.memory }}
        - name: SPARK_DAEMON_MEMORY
          value: 256m
        - name: SPARK_WORKER_DIR # each image has it, and its user may write there
          value: /opt/spark/work-dir
        # Without the first, a worker ignores a signal to decommission. Without the second, it looks for a master
        # that was restarted at its old address.
        - name: SPARK_DAEMON_JAVA_OPTS
          value: -Dspark.decommission.enabled=true -Dspark.worker.preferConfiguredMasterAddress=true
        {{- with .Values.executors.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- /* The worker itself needs half a gibibyte. */}}
      {{- $memory := add 512 (include "spark-elastic.container-memory" .Values.executors) }}
      resources:
        requests:
          cpu: {{ .Values.executors.cpu | default .Values.executors.cores }}
          memory: {{ $memory }}Mi
        limits:
          memory: {{ $memory }}Mi
      {{- include "spark-elastic.insert" (list 6 "spark-elastic.mounts" (list . "worker")) }}
      {{- if eq .Values.operator "none" }}
      lifecycle:
        preStop:
          exec:
            # Decommission the worker, and wait until its executors have finished and ended.
            command:
              - /bin/sh
              - -c
              - |
                kill -s PWR 1
                while grep -qs '[C]oarseGrainedExecutorBackend' /proc/[0-9]*/cmdline; do sleep 1; done
      {{- end }}
  {{- include "spark-elastic.insert" (list 2 "spark-elastic.volumes" (list . "worker")) }}
{{- end }}
