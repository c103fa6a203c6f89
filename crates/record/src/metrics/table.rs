//! All metrics: name, help, labels and buckets, as data. `docs/metrics.md` is tested against it.
//!
//! A label must never contain a path, a session or anything else that a command could choose: each has a fixed set of
//! values, so that no run can inflate what a scraper stores.

/// One metric, with all its label values.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) labels: &'static [Label],
    pub(super) shape: Shape,
    pub(super) unit: Unit,
}

#[derive(Debug)]
pub(super) struct Label {
    pub(super) name: &'static str,
    pub(super) values: Values,
}

#[derive(Debug)]
pub(super) enum Values {
    /// Any other value counts as the last one.
    Fixed(&'static [&'static str]),
    /// Names from the kernel's table, of which there are a few hundred.
    SystemCalls,
}

#[derive(Debug)]
pub(super) enum Shape {
    Counter,
    /// Upper bounds in the unit of the metric; one more bucket has none.
    Histogram(&'static [u64]),
}

/// The unit that is counted; it determines how values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Times,
    Bytes,
    /// Written as seconds.
    Microseconds,
}

const SECOND: u64 = 1_000_000;
const MIB: u64 = 1 << 20;

/// For values of newer events that this table does not have.
const OTHER: &str = "other";

pub(super) static SANDBOXES_CREATED: Family = Family {
    name: "palisade_sandboxes_created_total",
    help: "Sandboxes created; the rate of it is the creation rate.",
    labels: &[Label {
        name: "level",
        values: Values::Fixed(&["LEVEL_0", "LEVEL_1", "LEVEL_2", OTHER]),
    }],
    shape: Shape::Counter,
    unit: Unit::Times,
};

pub(super) static SANDBOX_LIFETIME: Family = Family {
    name: "palisade_sandbox_lifetime_seconds",
    help: "How long sandboxes lived, from the request to the end of the clean-up.",
    labels: &[],
    shape: Shape::Histogram(&[
        SECOND / 100,
        SECOND / 20,
        SECOND / 10,
        SECOND / 2,
        SECOND,
        5 * SECOND,
        15 * SECOND,
        60 * SECOND,
        300 * SECOND,
        900 * SECOND,
        3_600 * SECOND,
        21_600 * SECOND,
        86_400 * SECOND,
    ]),
    unit: Unit::Microseconds,
};

pub(super) static POLICY_VIOLATIONS: Family = Family {
    name: "palisade_policy_violations_total",
    help: "Attempts that a policy refuses: writing a protected name, executing an unlisted program.",
    labels: &[Label {
        name: "kind",
        values: Values::Fixed(&["protected-write", "execution", OTHER]),
    }],
    shape: Shape::Counter,
    unit: Unit::Times,
};

pub(super) static ESCAPE_ATTEMPTS: Family = Family {
    name: "palisade_escape_attempts_total",
    help: "Attempts to break out, by what gave them away and how grave they are.",
    labels: &[
        Label {
            name: "type",
            values: Values::Fixed(&["filesystem", "process", "network", "syscall"]),
        },
        Label { name: "severity", values: Values::Fixed(&["low", "medium", "high", "critical"]) },
    ],
    shape: Shape::Counter,
    unit: Unit::Times,
};

pub(super) static CPU: Family = Family {
    name: "palisade_cpu_seconds_total",
    help: "Processor time that commands used.",
    labels: &[Label { name: "mode", values: Values::Fixed(&["user", "system"]) }],
    shape: Shape::Counter,
    unit: Unit::Microseconds,
};

pub(super) static PEAK_MEMORY: Family = Family {
    name: "palisade_sandbox_peak_memory_bytes",
    help: "The most memory that each sandbox had at one time.",
    labels: &[],
    shape: Shape::Histogram(&[
        4 * MIB,
        16 * MIB,
        64 * MIB,
        256 * MIB,
        512 * MIB,
        1_024 * MIB,
        2_048 * MIB,
        4_096 * MIB,
        8_192 * MIB,
        16_384 * MIB,
        65_536 * MIB,
    ]),
    unit: Unit::Bytes,
};

pub(super) static IO_BYTES: Family = Family {
    name: "palisade_io_bytes_total",
    help: "Bytes that commands had moved to and from storage, where the run could tell.",
    labels: DIRECTION,
    shape: Shape::Counter,
    unit: Unit::Bytes,
};

pub(super) static IO_OPERATIONS: Family = Family {
    name: "palisade_io_operations_total",
    help: "Operations with which commands read and wrote, where the run could tell.",
    labels: DIRECTION,
    shape: Shape::Counter,
    unit: Unit::Times,
};

const DIRECTION: &[Label] =
    &[Label { name: "direction", values: Values::Fixed(&["read", "write"]) }];

pub(super) static BLOCKED_SYSCALLS: Family = Family {
    name: "palisade_blocked_syscalls_total",
    help: "System calls that were refused and told, by name.",
    labels: &[Label { name: "syscall", values: Values::SystemCalls }],
    shape: Shape::Counter,
    unit: Unit::Times,
};

pub(super) static CLEANUPS: Family = Family {
    name: "palisade_cleanups_total",
    help: "Clean-ups after sandboxes: done, or failed and so not known to have left nothing.",
    labels: &[Label { name: "result", values: Values::Fixed(&["done", "failed"]) }],
    shape: Shape::Counter,
    unit: Unit::Times,
};

pub(super) static DECISIONS: Family = Family {
    name: "palisade_decisions_total",
    help: "Decisions about something outside the view, as the audit log has them, by who decided.",
    labels: &[
        Label { name: "decision", values: Values::Fixed(&["allowed", "denied"]) },
        Label {
            name: "source",
            values: Values::Fixed(&[
                "rule",
                "on-ask",
                "terminal",
                "socket",
                "timeout",
                "nobody-to-ask",
                "too-many-questions",
                "not-a-file",
                "withdrawn",
                OTHER,
            ]),
        },
    ],
    shape: Shape::Counter,
    unit: Unit::Times,
};

pub(super) static QUESTIONS: Family = Family {
    name: "palisade_questions_total",
    help: "Questions that were asked and decided, by a person or by the clock.",
    labels: &[],
    shape: Shape::Counter,
    unit: Unit::Times,
};

pub(super) static HOST_DECISIONS: Family = Family {
    name: "palisade_host_decisions_total",
    help: "Decisions about hosts that no rule names, by who decided.",
    labels: &[
        Label { name: "decision", values: Values::Fixed(&["allowed", "denied"]) },
        Label {
            name: "source",
            values: Values::Fixed(&[
                "on-ask",
                "terminal",
                "socket",
                "timeout",
                "nobody-to-ask",
                "too-many-questions",
                "withdrawn",
                OTHER,
            ]),
        },
    ],
    shape: Shape::Counter,
    unit: Unit::Times,
};

pub(super) static CONNECTIONS: Family = Family {
    name: "palisade_connections_total",
    help: "Attempts to reach a host, by what became of them.",
    labels: &[Label {
        name: "verdict",
        values: Values::Fixed(&[
            "proxy_allowed",
            "proxy_denied",
            "proxy_denied_port",
            "proxy_blocked_dns",
            "dns_rebind_blocked",
            "redirect_blocked",
            "redirect_denied",
            OTHER,
        ]),
    }],
    shape: Shape::Counter,
    unit: Unit::Times,
};

pub(super) static NETWORK_BYTES: Family = Family {
    name: "palisade_network_bytes_total",
    help: "Bytes that allowed connections carried out of sandboxes and into them.",
    labels: &[Label { name: "direction", values: Values::Fixed(&["sent", "received"]) }],
    shape: Shape::Counter,
    unit: Unit::Bytes,
};

pub(super) static NAME_QUERIES: Family = Family {
    name: "palisade_name_queries_total",
    help: "Names that were looked up, by what was answered.",
    labels: &[Label {
        name: "answer",
        values: Values::Fixed(&[
            "noerror", "nxdomain", "refused", "servfail", "formerr", "notimp", OTHER,
        ]),
    }],
    shape: Shape::Counter,
    unit: Unit::Times,
};

pub(super) static SUSPECTED_NAMES: Family = Family {
    name: "palisade_suspected_names_total",
    help: "Names that were looked up and look as if they carried data.",
    labels: &[],
    shape: Shape::Counter,
    unit: Unit::Times,
};

pub(super) static RUNS: Family = Family {
    name: "palisade_runs_total",
    help: "Runs asked for, by how they ended; one that was refused or failed made no sandbox.",
    labels: &[Label {
        name: "outcome",
        values: Values::Fixed(&[
            "completed",
            "signalled",
            "timeout",
            "out-of-memory",
            "cpu-time",
            "too-many-processes",
            "disk-full",
            "output-capped",
            "killed",
            "refused",
            "failed",
            OTHER,
        ]),
    }],
    shape: Shape::Counter,
    unit: Unit::Times,
};

pub(super) static LIMITS_HIT: Family = Family {
    name: "palisade_limits_hit_total",
    help: "Runs that came up against a limit, by the policy key of the limit.",
    labels: &[Label {
        name: "limit",
        values: Values::Fixed(&[
            "resources.maxMemory",
            "resources.maxSwap",
            "resources.cpus",
            "resources.cpuSet",
            "resources.maxCPU",
            "process.maxProcesses",
            "resources.maxThreads",
            "resources.maxFileDescriptors",
            "filesystem.maxFileSize",
            "filesystem.maxTotalSize",
            "filesystem.maxInodes",
            "resources.maxIOBandwidth",
            "resources.maxIOPS",
            "resources.timeout",
            "resources.maxOutputSize",
            OTHER,
        ]),
    }],
    shape: Shape::Counter,
    unit: Unit::Times,
};

/// In the order of output.
pub(super) static TABLE: [&Family; 19] = [
    &SANDBOXES_CREATED,
    &SANDBOX_LIFETIME,
    &POLICY_VIOLATIONS,
    &ESCAPE_ATTEMPTS,
    &CPU,
    &PEAK_MEMORY,
    &IO_BYTES,
    &IO_OPERATIONS,
    &BLOCKED_SYSCALLS,
    &CLEANUPS,
    &DECISIONS,
    &QUESTIONS,
    &HOST_DECISIONS,
    &CONNECTIONS,
    &NETWORK_BYTES,
    &NAME_QUERIES,
    &SUSPECTED_NAMES,
    &RUNS,
    &LIMITS_HIT,
];

impl Label {
    /// The value itself if this label has it, otherwise the one for all others.
    pub(super) fn value(&self, value: &str) -> String {
        match &self.values {
            Values::Fixed(values) if values.contains(&value) => value.to_owned(),
            Values::Fixed(values) => values.last().copied().unwrap_or(OTHER).to_owned(),
            Values::SystemCalls if is_system_call(value) => value.to_owned(),
            Values::SystemCalls => "unknown".to_owned(),
        }
    }

    pub(super) fn has(&self, value: &str) -> bool {
        match &self.values {
            Values::Fixed(values) => values.contains(&value),
            Values::SystemCalls => is_system_call(value),
        }
    }
}

/// The form of the names in the kernel's table; the longest today has 23 characters.
fn is_system_call(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=40).contains(&name.len()) && name.bytes().all(is_letter)
}
