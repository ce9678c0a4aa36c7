{{- define "svc.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "svc.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "svc.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "svc.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "svc.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{/* What clients may call the mirrors: the service by all its names, the port of the node, and what the values add. */}}
{{- define "svc.names" -}}
{{- $service := include "svc.fullname" . -}}
{{- $names := list $service (printf "%s.%s" $service .Release.Namespace) (printf "%s.%s.svc" $service .Release.Namespace) (printf "%s.%s.svc.cluster.local" $service .Release.Namespace) -}}
{{- if and .Values.mirror.oci.enabled .Values.mirror.oci.hostPort -}}
{{- $names = concat $names (list "127.0.0.1" "localhost") -}}
{{- end -}}
{{- concat $names .Values.mirror.names | uniq | toJson -}}
{{- end -}}

{{- define "svc.config" -}}
[swarm]
enabled = {{ .Values.swarm.enabled }}
dht = {{ .Values.swarm.dht }}
peer_addr = "0.0.0.0:{{ .Values.swarm.port }}"
webseed_addr = "0.0.0.0:{{ .Values.webseed.port }}"
trackers = {{ .Values.swarm.trackers | toJson }}
upload_limit = {{ int64 .Values.swarm.uploadLimit }}
{{- with .Values.swarm.trusted }}
trusted = {{ toJson . }}
{{- end }}
{{- if or .Values.mirror.hub.enabled .Values.mirror.oci.enabled }}

[mirror]
{{- if .Values.mirror.hub.enabled }}
hub_addr = "0.0.0.0:{{ .Values.mirror.hub.port }}"
on_demand = {{ .Values.mirror.hub.onDemand }}
on_demand_allow = {{ .Values.mirror.hub.onDemandAllow | toJson }}
on_demand_anonymous = {{ .Values.mirror.hub.onDemandAnonymous }}
{{- end }}
{{- if .Values.mirror.oci.enabled }}
oci_addr = "0.0.0.0:{{ .Values.mirror.oci.port }}"
{{- end }}
names = {{ include "svc.names" . }}
{{- end }}
{{- if .Values.metrics.enabled }}

[metrics]
addr = "0.0.0.0:{{ .Values.metrics.port }}"
{{- end }}
{{- with .Values.config }}

{{ . | trim }}
{{- end }}
{{- end -}}
