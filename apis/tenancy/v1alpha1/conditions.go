package v1alpha1

// Types of the conditions of a VirtualCluster.
const (
	// ConditionProvisionerAvailable reports whether the manager offers the
	// provisioner of the control plane; its message lists those that it offers.
	// Written by the manager.
	ConditionProvisionerAvailable = "ProvisionerAvailable"
	// ConditionControlPlaneReady reports whether the tenant's apiserver serves.
	// Written by the manager.
	ConditionControlPlaneReady = "ControlPlaneReady"
	// ConditionSyncing reports whether the syncer syncs the tenant's objects.
	// Written by the syncer.
	ConditionSyncing = "Syncing"
	// ConditionSynced reports whether no object of the tenant has been pending
	// for more than ten seconds; its message counts the pending objects and
	// describes the oldest. Written by the syncer.
	ConditionSynced = "Synced"
	// ConditionRulesValid reports whether spec.quota.rules can be evaluated;
	// there is none where there are no rules. Written by the syncer.
	ConditionRulesValid = "RulesValid"
	// ConditionQuotaEnforced reports whether the syncer enforces spec.quota;
	// there is none without a quota. Written by the syncer.
	ConditionQuotaEnforced = "QuotaEnforced"
	// ConditionWithinLimits reports whether a hosted control plane or a converted
	// tenant is within its limits; false while requests are rejected, and for a
	// minute after. Written by the manager, and by the syncer for a converted
	// tenant.
	ConditionWithinLimits = "WithinLimits"
	// ConditionControllersWorking reports whether the controllers of a hosted
	// control plane work; false while one of them fails and is started again.
	// Written by the manager.
	ConditionControllersWorking = "ControllersWorking"
	// ConditionExtraSANsValid reports whether a hosted control plane has all of
	// spec.controlPlane.extraSANs; there is none where there are none. Written by the
	// manager.
	ConditionExtraSANsValid = "ExtraSANsValid"
	// ConditionAwake reports whether a Hosted control plane runs. It is false
	// while the control plane sleeps or is paused, and the time of its last
	// transition is since when. Written by the manager.
	ConditionAwake = "Awake"
	// ConditionMoved reports whether the data of a hosted control plane is in the
	// ControlPlaneStore of spec.controlPlane.store; there is none if that has never
	// been set. Written by the manager.
	ConditionMoved = "Moved"
	// ConditionAliasHeld reports whether the gateway finds the tenant by
	// spec.alias; there is none without an alias. Written by the manager.
	ConditionAliasHeld = "AliasHeld"
	// ConditionSharedCRDs reports whether the tenant has the CRDs that the super
	// cluster shares with it; there is none while none are shared. Written by the
	// syncer.
	ConditionSharedCRDs = "SharedCRDs"
	// ConditionReady is true when the tenant can work: the control plane is
	// ready and its objects are synced.
	ConditionReady = "Ready"
)

// Reasons of the conditions of a VirtualCluster.
const (
	// ReasonReady: all is well.
	ReasonReady = "Ready"
	// ReasonStarting: the control plane is being made or is starting.
	ReasonStarting = "Starting"
	// ReasonStartFailed: the control plane could not be started; the start is retried.
	ReasonStartFailed = "StartFailed"
	// ReasonNameTooLong: the cluster key would be too long for a namespace.
	ReasonNameTooLong = "NameTooLong"
	// ReasonNamespaceConflict: the root namespace exists and belongs to something else.
	ReasonNamespaceConflict = "NamespaceConflict"
	// ReasonProvisionerAvailable: this manager offers the provisioner.
	ReasonProvisionerAvailable = "ProvisionerAvailable"
	// ReasonProvisionerUnavailable: this manager does not have the provisioner
	// that the spec names.
	ReasonProvisionerUnavailable = "ProvisionerUnavailable"
	// ReasonUnsupportedVersion: the provisioner cannot run the Kubernetes
	// version that the spec names.
	ReasonUnsupportedVersion = "UnsupportedVersion"
	// ReasonInvalidSpec: a field of the spec cannot be used as it is.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonServiceCIDRTaken: another tenant has Service addresses of
	// spec.serviceCidr, or none are left.
	ReasonServiceCIDRTaken = "ServiceCIDRTaken"
	// ReasonNoStore: no ControlPlaneStore takes the data of the control plane.
	ReasonNoStore = "NoStore"
	// ReasonNoPodPort: the replica of vc-host has no port left at which the
	// tenant's pods could reach the control plane.
	ReasonNoPodPort = "NoPodPort"
	// ReasonNameReserved: a name in spec.controlPlane.extraSANs is one of the
	// platform, or an address of the super cluster.
	ReasonNameReserved = "NameReserved"
	// ReasonNameTaken: another control plane has a name in
	// spec.controlPlane.extraSANs.
	ReasonNameTaken = "NameTaken"
	// ReasonExtraSANsUnsupported: the provisioner gives control planes no extra
	// names.
	ReasonExtraSANsUnsupported = "ExtraSANsUnsupported"
	// ReasonAliasHeld: no older VirtualCluster has the alias.
	ReasonAliasHeld = "AliasHeld"
	// ReasonAliasTaken: an older VirtualCluster has the alias.
	ReasonAliasTaken = "AliasTaken"
	// ReasonMoved: the data of the control plane is in the store of the spec.
	ReasonMoved = "Moved"
	// ReasonMoving: the data is about to be moved, or being moved.
	ReasonMoving = "Moving"
	// ReasonMoveFailed: the data could not be moved. The control plane serves from
	// its store, and the move is retried.
	ReasonMoveFailed = "MoveFailed"
	// ReasonStoreBehind: the revision of the store is too far behind that of the
	// one with the data.
	ReasonStoreBehind = "StoreBehind"
	// ReasonKubeconfigMissing: the Secret with the kubeconfig, or its key, does
	// not exist.
	ReasonKubeconfigMissing = "KubeconfigMissing"
	// ReasonKubeconfigInvalid: the kubeconfig cannot be parsed, or asks for
	// what is not allowed.
	ReasonKubeconfigInvalid = "KubeconfigInvalid"
	// ReasonUnauthorized: the tenant's apiserver refuses the credentials of the
	// kubeconfig.
	ReasonUnauthorized = "Unauthorized"
	// ReasonUnreachable: the tenant's apiserver does not answer.
	ReasonUnreachable = "Unreachable"
	// ReasonAnswerRefused: an answer of the tenant's apiserver was refused: it
	// is too large, a redirect, or in another format.
	ReasonAnswerRefused = "AnswerRefused"
	// ReasonIdentityChanged: the tenant's apiserver serves another cluster than
	// the one whose objects run here.
	ReasonIdentityChanged = "IdentityChanged"
	// ReasonRemovalUnconfirmed: the tenant's pods are gone, and no deletion was
	// observed; an admin has to confirm that their copies are deleted.
	ReasonRemovalUnconfirmed = "RemovalUnconfirmed"
	// ReasonNothingPending: no object has been pending for long.
	ReasonNothingPending = "NothingPending"
	// ReasonObjectsPending: objects have been pending for long.
	ReasonObjectsPending = "ObjectsPending"
	// ReasonValid: what was written can be used.
	ReasonValid = "Valid"
	// ReasonInvalidExpression: an expression does not compile.
	ReasonInvalidExpression = "InvalidExpression"
	// ReasonEnforced: the syncer enforces all parts of the quota.
	ReasonEnforced = "Enforced"
	// ReasonValidationDisabled: the syncer does not ask the validators that
	// would enforce the quota.
	ReasonValidationDisabled = "ValidationDisabled"
	// ReasonWithinLimits: no limit of the control plane is reached.
	ReasonWithinLimits = "WithinLimits"
	// ReasonStorageLimitReached: the control plane stores as many bytes or
	// objects as it may.
	ReasonStorageLimitReached = "StorageLimitReached"
	// ReasonExpressionLimitReached: the expressions that the control plane stores
	// are as much work as they may be.
	ReasonExpressionLimitReached = "ExpressionLimitReached"
	// ReasonRequestsThrottled: requests were rejected since the control plane
	// had as many in flight as it may.
	ReasonRequestsThrottled = "RequestsThrottled"
	// ReasonWritesThrottled: writes were rejected since the control plane wrote
	// faster than it may.
	ReasonWritesThrottled = "WritesThrottled"
	// ReasonMemoryPressure: requests were rejected since the process that hosts
	// the control plane was short of memory.
	ReasonMemoryPressure = "MemoryPressure"
	// ReasonControllersWorking: no controller of the control plane fails.
	ReasonControllersWorking = "ControllersWorking"
	// ReasonControllersFailing: controllers of the control plane fail, and are
	// started again.
	ReasonControllersFailing = "ControllersFailing"
	// ReasonAsleep: the control plane sleeps; a request wakes it.
	ReasonAsleep = "Asleep"
	// ReasonPaused: the control plane is stopped because of spec.paused.
	ReasonPaused = "Paused"
	// ReasonIdle: the control plane sleeps because it was not used.
	ReasonIdle = "Idle"
	// ReasonSchedule: the control plane sleeps, or was woken, by
	// spec.controlPlane.sleep.schedule.
	ReasonSchedule = "Schedule"
	// ReasonInvalidSchedule: spec.controlPlane.sleep.schedule cannot be used;
	// the control plane does not sleep by it.
	ReasonInvalidSchedule = "InvalidSchedule"
	// ReasonAwake: the control plane was started and has not slept since.
	ReasonAwake = "Awake"
	// ReasonConnection: a connection woke the control plane.
	ReasonConnection = "Connection"
	// ReasonWorkDue: a CronJob woke the control plane, or a Job whose time to
	// live expired.
	ReasonWorkDue = "WorkDue"
	// ReasonRequested: an admin woke the control plane by an annotation.
	ReasonRequested = "Requested"
	// ReasonResumed: spec.paused is false again, or the sleep is configured
	// otherwise.
	ReasonResumed = "Resumed"
	// ReasonWakeNeeded: the tenant has to be shown a change in the super
	// cluster, so the control plane is woken.
	ReasonWakeNeeded = "WakeNeeded"
	// ReasonNotSyncing: the syncer has not reported on this tenant yet.
	ReasonNotSyncing = "NotSyncing"
	// ReasonShared: the tenant has the CRDs that are shared with it.
	ReasonShared = "Shared"
	// ReasonRetrying: a CRD that is shared with the tenant is being changed, or
	// could not be.
	ReasonRetrying = "Retrying"
	// ReasonConflict: a CRD of the tenant cannot be replaced by the shared one of
	// its name, and was left unchanged.
	ReasonConflict = "Conflict"
	// ReasonObjectsLeft: a recalled CRD is not served any more, and the tenant's
	// objects of it are kept.
	ReasonObjectsLeft = "ObjectsLeft"
	// ReasonTooManyCRDs: more CRDs are shared with the tenant than it gets.
	ReasonTooManyCRDs = "TooManyCRDs"
	// ReasonTerminating: the VirtualCluster is being deleted.
	ReasonTerminating = "Terminating"
)
