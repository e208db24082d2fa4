package cardinality

// restriction limits labels of metrics to the values that are known, if any.
type restriction struct {
	labels, metrics []string
	// unknown does not allow known values either.
	unknown bool
}

const (
	group       = "group"
	version     = "version"
	resource    = "resource"
	subresource = "subresource"
)

// restrictions are those of the metrics with labels whose values tenants choose.
// The test of package upstream finds the metrics that are not decided.
var restrictions = []restriction{
	{
		labels: []string{group, version, resource, subresource},
		metrics: []string{
			"apiserver_longrunning_requests", "apiserver_request_duration_seconds", "apiserver_request_sli_duration_seconds",
			"apiserver_request_slo_duration_seconds", "apiserver_request_total", "apiserver_requested_deprecated_apis",
			"apiserver_response_sizes",
		},
	},
	{
		labels:  []string{group, resource, subresource},
		metrics: []string{"apiserver_selfrequest_total"},
	},
	{
		labels:  []string{group, version, resource},
		metrics: []string{"apiserver_watch_events_sizes", "apiserver_watch_events_total", "apiserver_watch_list_duration_seconds"},
	},
	{
		labels: []string{group, resource},
		metrics: []string{
			"apiserver_cache_list_fetched_objects_total", "apiserver_cache_list_returned_objects_total", "apiserver_cache_list_total",
			"apiserver_init_events_total", "apiserver_request_body_size_bytes", "apiserver_resource_objects",
			"apiserver_resource_size_estimate_bytes", "apiserver_storage_consistency_checks_total", "apiserver_storage_decode_errors_total",
			"apiserver_storage_events_received_total", "apiserver_storage_list_evaluated_objects_total",
			"apiserver_storage_list_fetched_objects_total", "apiserver_storage_list_returned_objects_total", "apiserver_storage_list_total",
			"apiserver_terminated_watchers_total", "apiserver_watch_cache_consistent_read_total", "apiserver_watch_cache_events_dispatched_total",
			"apiserver_watch_cache_events_received_total", "apiserver_watch_cache_initializations_total", "apiserver_watch_cache_read_wait_seconds",
			"apiserver_watch_cache_resource_version", "apiserver_watch_filtered_events_total", "apiserver_watch_shards_total",
			"etcd_bookmark_counts", "etcd_bookmark_total", "etcd_request_duration_seconds", "etcd_request_errors_total", "etcd_requests_total",
			"watch_cache_capacity", "watch_cache_capacity_decrease_total", "watch_cache_capacity_increase_total",
		},
	},
	{
		labels:  []string{resource},
		metrics: []string{"apiserver_storage_objects"},
	},
	{
		// These are of paths before anything is found there, so that all combinations
		// of known values are possible.
		unknown: true,
		labels:  []string{group, version, resource, subresource},
		metrics: []string{"apiserver_request_aborts_total", "apiserver_request_terminations_total"},
	},
	{
		labels: []string{"name"},
		metrics: []string{
			"aggregator_unavailable_apiservice_total",
			"apiserver_admission_match_condition_evaluation_errors_total", "apiserver_admission_match_condition_evaluation_seconds",
			"apiserver_admission_match_condition_exclusions_total", "apiserver_admission_webhook_admission_duration_seconds",
			"apiserver_admission_webhook_fail_open_count", "apiserver_admission_webhook_rejection_count",
			"apiserver_admission_webhook_request_total",
		},
	},
	{
		labels: []string{"policy", "policy_binding"},
		metrics: []string{
			"apiserver_mutating_admission_policy_check_duration_seconds", "apiserver_mutating_admission_policy_check_total",
			"apiserver_validating_admission_policy_check_duration_seconds", "apiserver_validating_admission_policy_check_total",
		},
	},
	{
		labels:  []string{"crd_name", "from_version", "to_version"},
		metrics: []string{"apiserver_crd_conversion_webhook_duration_seconds"},
	},
	{
		labels:  []string{"crd"},
		metrics: []string{"apiextensions_openapi_v2_regeneration_count"},
	},
	{
		labels:  []string{group, version, "crd"},
		metrics: []string{"apiextensions_openapi_v3_regeneration_count"},
	},
	{
		labels:  []string{"apiservice"},
		metrics: []string{"aggregator_openapi_v2_regeneration_count"},
	},
	{
		// A webhook's status can have any number.
		labels:  []string{"code"},
		metrics: []string{"apiserver_request_total", "root_ca_cert_publisher_sync_duration_seconds", "root_ca_cert_publisher_sync_total"},
	},
	{
		// A Job names its controller, and can have any reason for its failure.
		labels:  []string{"controller_name"},
		metrics: []string{"job_controller_jobs_by_external_controller_total"},
	},
	{
		labels:  []string{"reason"},
		metrics: []string{"job_controller_jobs_finished_total"},
	},
	{
		labels:  []string{"namespace", "hpa_name"},
		metrics: []string{"horizontal_pod_autoscaler_controller_desired_replicas"},
	},
	{
		labels:  []string{"statefulset_namespace", "statefulset_name"},
		metrics: []string{"statefulset_controller_statefulset_max_unavailable", "statefulset_controller_statefulset_unavailable_replicas"},
	},
	{
		labels:  []string{"namespace"},
		metrics: []string{"pod_gc_collector_force_delete_pod_errors_total", "pod_gc_collector_force_delete_pods_total"},
	},
	{
		// The provisioner of a StorageClass.
		labels:  []string{"plugin_name"},
		metrics: []string{"volume_operation_errors_total", "volume_operation_total_errors", "volume_operation_total_seconds"},
	},
	{
		labels:  []string{"volume_plugin"},
		metrics: []string{"storage_operation_duration_seconds"},
	},
	{
		labels: []string{"cidr"},
		metrics: []string{
			"kube_apiserver_clusterip_allocator_allocated_ips", "kube_apiserver_clusterip_allocator_allocation_duration_seconds",
			"kube_apiserver_clusterip_allocator_allocation_errors_total", "kube_apiserver_clusterip_allocator_allocation_total",
			"kube_apiserver_clusterip_allocator_available_ips",
		},
	},
}
