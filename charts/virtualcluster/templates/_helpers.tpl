{{- /* Labels of an object: (list $ COMPONENT). */ -}}
{{- define "virtualcluster.labels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ index . 1 }}
app.kubernetes.io/part-of: virtualcluster
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ $root.Chart.Name }}-{{ $root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{- /* Labels that select the pods of a component. */ -}}
{{- define "virtualcluster.selector" -}}
app.kubernetes.io/name: {{ . }}
{{- end -}}

{{- /* The image of a component: (list $ COMPONENT VALUES). */ -}}
{{- define "virtualcluster.image" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $own := (index . 2).image -}}
{{- $all := $root.Values.image -}}
{{- $tag := $all.tag | default $root.Chart.AppVersion -}}
{{- if eq $component "vc-store" }}{{ $tag = include "virtualcluster.etcdTag" . }}{{ end -}}
{{- with $own.repository -}}
{{ . }}
{{- else -}}
{{- with $all.registry -}}{{ . }}/{{- end -}}
{{ $component | replace "vc-store" "etcd" }}
{{- end -}}
{{- if $own.digest -}}
@{{ $own.digest }}
{{- else -}}
:{{ $own.tag | default $tag }}
{{- end -}}
{{- end -}}

{{- /* The tag of the image of etcd, that of hack/release: an upgrade of the chart with the same tag does not restart the store. */ -}}
{{- define "virtualcluster.etcdTag" -}}3.6.16-0{{- end -}}

{{- /* The spec of a Deployment but its containers, up to the pod's: (list $ COMPONENT VALUES). */ -}}
{{- define "virtualcluster.deployment" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $values := index . 2 -}}
replicas: {{ $values.replicas }}
selector:
  matchLabels:
    {{- include "virtualcluster.selector" $component | nindent 4 }}
strategy:
  type: RollingUpdate
  rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
{{- end -}}

{{- /* The metadata of a component's pods. */ -}}
{{- define "virtualcluster.podMetadata" -}}
{{- $component := index . 1 -}}
{{- $values := index . 2 -}}
labels:
  {{- include "virtualcluster.selector" $component | nindent 2 }}
  app.kubernetes.io/part-of: virtualcluster
  {{- with $values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* What the specs of all pods have in common, in the profile restricted of Pod Security. */ -}}
{{- define "virtualcluster.pod" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $values := index . 2 -}}
serviceAccountName: {{ $component }}
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
- maxSkew: 1
  topologyKey: {{ . }}
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "virtualcluster.selector" $component | nindent 6 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  {{- if eq $component "vc-store" }}
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  {{- end }}
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- /* What all containers have in common. */ -}}
{{- define "virtualcluster.container" -}}
{{- $root := index . 0 -}}
{{- $values := index . 2 -}}
image: {{ include "virtualcluster.image" . | quote }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
resources:
  {{- toYaml $values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{- /* Probes of /healthz and /readyz. */ -}}
{{- define "virtualcluster.probes" -}}
livenessProbe:
  httpGet: {path: /healthz, port: probes}
  initialDelaySeconds: 15
  timeoutSeconds: 5
  failureThreshold: 5
readinessProbe:
  httpGet: {path: /readyz, port: probes}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end -}}

{{- /* Flags that all programs have. */ -}}
{{- define "virtualcluster.commonArgs" -}}
{{- $root := index . 0 -}}
{{- $values := index . 2 -}}
{{- if $root.Values.metrics.enabled }}
- --metrics-bind-address=:8443
{{- end }}
- -v={{ $values.logLevel }}
{{- range $values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{- /* The ConfigMap with the template of tenants' default network; empty without one. Another template has another name, with which vc-syncer restarts. */ -}}
{{- define "virtualcluster.defaultNetwork" -}}
{{- with .Values.vcSyncer.networks -}}
{{- if and .enabled .defaultTemplate -}}
vc-syncer-{{ sha256sum .defaultTemplate | trunc 8 }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* A PodDisruptionBudget: (list $ COMPONENT VALUES). */ -}}
{{- define "virtualcluster.disruptionBudget" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- if $root.Values.podDisruptionBudgets.enabled -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $component }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "virtualcluster.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "virtualcluster.selector" $component | nindent 6 }}
{{- end }}
{{- end -}}

{{- /* A ServiceMonitor of the port metrics: (list $ COMPONENT). */ -}}
{{- define "virtualcluster.serviceMonitor" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- if and $root.Values.metrics.enabled $root.Values.metrics.serviceMonitors.enabled -}}
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ $component }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "virtualcluster.labels" . | nindent 4 }}
    {{- with $root.Values.metrics.serviceMonitors.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  selector:
    matchLabels:
      {{- include "virtualcluster.selector" $component | nindent 6 }}
  endpoints:
  - port: metrics
    interval: {{ $root.Values.metrics.serviceMonitors.interval }}
    {{- if not (has $component (list "vc-dns" "vc-store")) }}
    scheme: https
    bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
    # The programs make a certificate of their own at each start. They authenticate and authorize who asks.
    tlsConfig: {insecureSkipVerify: true}
    {{- end }}
{{- end }}
{{- end -}}

{{- /* The Service of the port metrics: (list $ COMPONENT). */ -}}
{{- define "virtualcluster.metricsService" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- if $root.Values.metrics.enabled -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ $component }}-metrics
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "virtualcluster.labels" . | nindent 4 }}
spec:
  clusterIP: None
  selector:
    {{- include "virtualcluster.selector" $component | nindent 4 }}
  ports:
  - {name: metrics, port: 8443, targetPort: metrics, protocol: TCP}
{{- end }}
{{- end -}}

{{- /*
A NetworkPolicy that denies all but metrics, DNS, and connections to apiservers: (list $ COMPONENT INGRESS). INGRESS is a list of
rules in YAML; empty for none.
*/ -}}
{{- define "virtualcluster.networkPolicy" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $ingress := index . 2 -}}
{{- $all := $root.Values.networkPolicies -}}
{{- if $all.enabled -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ $component }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "virtualcluster.labels" (list $root $component) | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- include "virtualcluster.selector" $component | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
  {{- if $root.Values.metrics.enabled }}
  - from:
    {{- toYaml $all.metricsFrom | nindent 4 }}
    ports:
    - {protocol: TCP, port: metrics}
  {{- end }}
  {{- with $ingress }}
  {{- . | nindent 2 }}
  {{- end }}
  egress:
  - ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
  # The apiservers of the super cluster and of tenants.
  - ports:
    {{- range $all.apiServerPorts }}
    - {protocol: TCP, port: {{ . }}}
    {{- else }}
    - {protocol: TCP}
    {{- end }}
    {{- with $all.apiServerCIDRs }}
    to:
    {{- range . }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
    {{- end }}
{{- end }}
{{- end -}}

{{- define "virtualcluster.webhookAnnotations" -}}
{{- if .Values.webhook.certManager.enabled -}}
cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/vc-manager-webhook
{{- end -}}
{{- end -}}

{{- /* The host and port at which tenants' apiservers reach vn-agent. */ -}}
{{- define "virtualcluster.agentAddress" -}}
{{- .Values.vnAgent.address | default (printf "vn-agent.%s.svc:10550" .Release.Namespace) -}}
{{- end -}}

{{- /* The Secret with vn-agent's authorities; empty if tenants' apiservers do not reach it. */ -}}
{{- define "virtualcluster.agentCA" -}}
{{- if .Values.vnAgent.enabled -}}{{- .Values.vnAgent.caSecretName -}}{{- end -}}
{{- end -}}

{{- /* The flags of a program that leads tenants' apiservers to vn-agent. */ -}}
{{- define "virtualcluster.agentArgs" -}}
{{- if include "virtualcluster.agentCA" . -}}
- --vn-agent-address={{ include "virtualcluster.agentAddress" . }}
- --vn-agent-ca-file=/etc/vn-agent-ca/ca.crt
{{- end -}}
{{- end -}}

{{- /* The volume with vn-agent's authorities, and its mount. */ -}}
{{- define "virtualcluster.agentCAVolume" -}}
- name: vn-agent-ca
  secret:
    secretName: {{ .Values.vnAgent.caSecretName }}
    items:
    - {key: ca.crt, path: ca.crt}
{{- end -}}
{{- define "virtualcluster.agentCAMount" -}}
- {name: vn-agent-ca, mountPath: /etc/vn-agent-ca, readOnly: true}
{{- end -}}

{{- /* The URL at which clients reach the gateway. */ -}}
{{- define "virtualcluster.gatewayURL" -}}
{{- with .Values.vcGateway.url -}}
{{ . }}
{{- else -}}
https://vc-gateway.{{ .Release.Namespace }}.svc:{{ .Values.vcGateway.service.port }}
{{- end -}}
{{- end -}}

{{- /* The names for which the gateway makes a certificate. */ -}}
{{- define "virtualcluster.gatewayHosts" -}}
{{- $hosts := list (printf "vc-gateway.%s.svc" .Release.Namespace) -}}
{{- range compact (list .Values.vcGateway.url .Values.vcGateway.podURL) -}}
{{- $hosts = append $hosts (get (urlParse .) "hostname") -}}
{{- end -}}
{{- with .Values.vcGateway.domain -}}
{{- $hosts = append $hosts (printf "*.%s" .) -}}
{{- end -}}
{{ join "," (uniq $hosts) }}
{{- end -}}
