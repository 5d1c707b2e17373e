{{- define "tritonpy.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "tritonpy.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "tritonpy.labels" -}}
{{ include "tritonpy.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "tritonpy.metadata" -}}
name: {{ include "tritonpy.name" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "tritonpy.labels" . | nindent 2 }}
{{- end -}}

{{- define "tritonpy.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "tritonpy.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "tritonpy.name" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end -}}

{{- /* The folder or URL of a repository. */ -}}
{{- define "tritonpy.repositoryUrl" -}}
{{ .url | default (printf "/models/%s" .name) }}
{{- end -}}

{{- /* server.yaml: what the user wrote, and what the chart knows. */ -}}
{{- define "tritonpy.config" -}}
{{- $tls := dict -}}
{{- if .Values.tls.secretName -}}
{{- $_ := set $tls "tls" (dict "certificate_file" "/etc/tritonpy/tls/tls.crt" "key_file" "/etc/tritonpy/tls/tls.key") -}}
{{- end -}}
{{- $frontends := dict
      "http" (merge (dict "port" (int .Values.ports.http)) $tls)
      "grpc" (merge (dict "port" (int .Values.ports.grpc)) $tls)
      "metrics" (dict "port" (int .Values.ports.metrics)) -}}
{{- $config := dict "host" "0.0.0.0" "frontends" $frontends "exit_timeout_s" (int .Values.shutdown.drainSeconds) -}}
{{- $repositories := list -}}
{{- range .Values.models -}}
{{- $repositories = append $repositories (dict "url" (include "tritonpy.repositoryUrl" .)) -}}
{{- end -}}
{{- if $repositories -}}
{{- $_ := set $config "repositories" $repositories -}}
{{- end -}}
{{- if .Values.keys.secretName -}}
{{- $_ := set $config "auth" (dict "api_keys" (dict "file" "/etc/tritonpy/keys/keys.toml")) -}}
{{- $_ := set $config "access" (dict "open" (list "health" "metrics")) -}}
{{- end -}}
{{- mergeOverwrite $config (deepCopy .Values.server.config) | toYaml -}}
{{- end -}}

{{- define "tritonpy.probe" -}}
{{- if eq .values.probes.protocol "grpc" -}}
grpc:
  port: {{ .values.ports.grpc }}
{{- else -}}
httpGet:
  path: {{ .path }}
  port: http
  scheme: {{ ternary "HTTPS" "HTTP" (ne .values.tls.secretName "") }}
{{- end -}}
{{- end -}}

{{- /* Labels that select this release in PromQL. */ -}}
{{- define "tritonpy.series" -}}
namespace={{ .Release.Namespace | quote }},service={{ include "tritonpy.name" . | quote }}
{{- end -}}

{{- define "tritonpy.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: {drop: [ALL]}
{{- end -}}
