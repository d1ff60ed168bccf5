{{/* Labels of all objects. */}}
{{- define "parley.labels" -}}
app.kubernetes.io/name: parley
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* Labels that select the pods of one part: (dict "root" . "part" "server"). */}}
{{- define "parley.selector" -}}
app.kubernetes.io/name: parley
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "parley.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{/* Variables of all processes. The secrets are those of existingSecret. */}}
{{- define "parley.env" -}}
envFrom:
  - secretRef:
      name: {{ required "existingSecret is required" .Values.existingSecret }}
env:
  - name: PARLEY_PUBLIC_URL
    value: {{ required "publicUrl is required" .Values.publicUrl | quote }}
  - name: PARLEY_TRUSTED_PROXIES
    value: {{ .Values.trustedProxies | quote }}
  - name: PARLEY_METRICS_HOST
    value: 0.0.0.0
  {{- range $name, $value := .Values.env }}
  - name: {{ $name }}
    value: {{ $value | quote }}
  {{- end }}
{{- end -}}

{{- define "parley.container" -}}
image: {{ include "parley.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: files, mountPath: /var/lib/parley}
  - {name: tmp, mountPath: /tmp}
{{- end -}}

{{- define "parley.pod" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: files
    {{- if .Values.persistence.enabled }}
    persistentVolumeClaim: {claimName: {{ .Release.Name }}-files}
    {{- else }}
    emptyDir: {}
    {{- end }}
  - name: tmp
    emptyDir: {}
{{- end -}}
