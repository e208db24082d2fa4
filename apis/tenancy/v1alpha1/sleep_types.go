package v1alpha1

// SleepSpec configures when a control plane sleeps: it is stopped, its data is
// kept, and the tenant's pods continue to run. A request to its apiserver is
// held and wakes it.
type SleepSpec struct {
	// afterIdleSeconds is the time without use after which the control plane is
	// put to sleep. It is in use while it has requests or watches from outside
	// the platform, unfinished work, or a CronJob that is about to be due. 0:
	// never. Default: the host's --sleep-after-idle, which is never unless it is
	// set.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	// +kubebuilder:validation:XValidation:rule="self == 0 || self >= 10",message="afterIdleSeconds must be 0, which means never, or at least 10"
	AfterIdleSeconds *int32 `json:"afterIdleSeconds,omitempty"`

	// schedule puts the control plane to sleep and wakes it at fixed times.
	// +optional
	Schedule *SleepSchedule `json:"schedule,omitempty"`

	// workloads is what happens to the tenant's Deployments, StatefulSets and
	// ReplicaSets while the control plane sleeps. Default: Keep.
	// +optional
	// +kubebuilder:validation:Enum=Keep;ScaleToZero
	Workloads SleepingWorkloads `json:"workloads,omitempty"`
}

// SleepSchedule is the times at which a control plane is put to sleep and
// woken. Between them, a request wakes it as usual.
//
// +kubebuilder:validation:XValidation:rule="has(self.asleep) || has(self.awake)",message="schedule must set asleep, awake or both"
type SleepSchedule struct {
	// asleep is when the control plane is put to sleep, even if it is in use, in
	// cron form with five fields, from the minute to the day of the week, such as
	// "0 20 * * 1-5".
	// +optional
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[^\s=]+( +[^\s=]+){4}$`
	Asleep string `json:"asleep,omitempty"`

	// awake is when the control plane wakes, in cron form. Such as "0 7 * * 1-5".
	// +optional
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[^\s=]+( +[^\s=]+){4}$`
	Awake string `json:"awake,omitempty"`

	// timeZone is the time zone of both, such as Europe/Berlin. Default: UTC.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+){0,2}$`
	TimeZone string `json:"timeZone,omitempty"`
}

// SleepingWorkloads is what happens to workloads while a control plane sleeps.
type SleepingWorkloads string

const (
	// SleepingWorkloadsKeep keeps the pods running.
	SleepingWorkloadsKeep SleepingWorkloads = "Keep"
	// SleepingWorkloadsScaleToZero scales workloads to zero before the control
	// plane sleeps, and back when it wakes.
	SleepingWorkloadsScaleToZero SleepingWorkloads = "ScaleToZero"
)
