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
const MILLISECOND: u64 = 1_000;
const MIB: u64 = 1 << 20;

/// For values of newer events that this table does not have.
const OTHER: &str = "other";

pub(super) static SANDBOXES_CREATED: Family = Family::counter(
    "palisade_sandboxes_created_total",
    "Sandboxes created; the rate of it is the creation rate.",
    &[Label::fixed("level", &["LEVEL_0", "LEVEL_1", "LEVEL_2", OTHER])],
);

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

pub(super) static SETUP: Family = Family {
    name: "palisade_setup_seconds",
    help: "How long it took from the request to the start of the command, or until a session could take commands.",
    labels: &[],
    shape: Shape::Histogram(&[
        MILLISECOND,
        MILLISECOND * 5 / 2,
        5 * MILLISECOND,
        10 * MILLISECOND,
        25 * MILLISECOND,
        50 * MILLISECOND,
        100 * MILLISECOND,
        250 * MILLISECOND,
        500 * MILLISECOND,
        SECOND,
        5 * SECOND,
    ]),
    unit: Unit::Microseconds,
};

pub(super) static SESSION_COMMANDS: Family = Family {
    name: "palisade_session_command_seconds",
    help: "How long commands of sessions ran.",
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
    ]),
    unit: Unit::Microseconds,
};

pub(super) static POLICY_VIOLATIONS: Family = Family::counter(
    "palisade_policy_violations_total",
    "Attempts that a policy refuses: writing a protected name, executing an unlisted program.",
    &[Label::fixed("kind", &["protected-write", "execution", OTHER])],
);

pub(super) static ESCAPE_ATTEMPTS: Family = Family::counter(
    "palisade_escape_attempts_total",
    "Attempts to break out, by what gave them away and how grave they are.",
    &[
        Label::fixed("type", &["filesystem", "process", "network", "syscall"]),
        Label::fixed("severity", &["low", "medium", "high", "critical"]),
    ],
);

pub(super) static ESCAPE_RESPONSES: Family = Family::counter(
    "palisade_escape_responses_total",
    "Runs that were ended for an attempt to break out, by what was done.",
    &[Label::fixed("action", &["kill", "quarantine"])],
);

pub(super) static QUARANTINED: Family =
    Family::counter("palisade_quarantined_total", "Tools that were quarantined.", &[]);

pub(super) static CPU: Family = Family::counter(
    "palisade_cpu_seconds_total",
    "Processor time that commands used.",
    &[Label::fixed("mode", &["user", "system"])],
)
.of(Unit::Microseconds);

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

pub(super) static IO_BYTES: Family = Family::counter(
    "palisade_io_bytes_total",
    "Bytes that commands had moved to and from storage, where the run could tell.",
    DIRECTION,
)
.of(Unit::Bytes);

pub(super) static IO_OPERATIONS: Family = Family::counter(
    "palisade_io_operations_total",
    "Operations with which commands read and wrote, where the run could tell.",
    DIRECTION,
);

const DIRECTION: &[Label] = &[Label::fixed("direction", &["read", "write"])];

pub(super) static BLOCKED_SYSCALLS: Family = Family::counter(
    "palisade_blocked_syscalls_total",
    "System calls that were refused and told, by name.",
    &[Label { name: "syscall", values: Values::SystemCalls }],
);

pub(super) static CLEANUPS: Family = Family::counter(
    "palisade_cleanups_total",
    "Clean-ups after sandboxes: done, or failed and so not known to have left nothing.",
    &[Label::fixed("result", &["done", "failed"])],
);

pub(super) static SESSIONS_SWEPT: Family = Family::counter(
    "palisade_sessions_swept_total",
    "Sessions that a killed supervisor left: marked as ended, half of one removed, or failed to.",
    &[Label::fixed("result", &["marked", "removed", "failed"])],
);

pub(super) static DECISIONS: Family = Family::counter(
    "palisade_decisions_total",
    "Decisions about something outside the view, as the audit log has them, by who decided.",
    &[
        Label::fixed("decision", &["allowed", "denied"]),
        Label::fixed(
            "source",
            &[
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
            ],
        ),
    ],
);

pub(super) static QUESTIONS: Family = Family::counter(
    "palisade_questions_total",
    "Questions that were asked and decided, by a person or by the clock.",
    &[],
);

pub(super) static QUESTION_WAIT: Family = Family {
    name: "palisade_question_wait_seconds",
    help: "How long those waited who needed the answer to a question.",
    labels: &[],
    shape: Shape::Histogram(&[
        SECOND / 100,
        SECOND / 10,
        SECOND / 2,
        SECOND,
        2 * SECOND,
        5 * SECOND,
        15 * SECOND,
        60 * SECOND,
        300 * SECOND,
        900 * SECOND,
    ]),
    unit: Unit::Microseconds,
};

pub(super) static HOST_DECISIONS: Family = Family::counter(
    "palisade_host_decisions_total",
    "Decisions about hosts that no rule names, by who decided.",
    &[
        Label::fixed("decision", &["allowed", "denied"]),
        Label::fixed(
            "source",
            &[
                "on-ask",
                "terminal",
                "socket",
                "timeout",
                "nobody-to-ask",
                "too-many-questions",
                "withdrawn",
                OTHER,
            ],
        ),
    ],
);

pub(super) static CONNECTIONS: Family = Family::counter(
    "palisade_connections_total",
    "Attempts to reach a host, by what became of them.",
    &[Label::fixed(
        "verdict",
        &[
            "proxy_allowed",
            "proxy_denied",
            "proxy_denied_port",
            "proxy_blocked_dns",
            "dns_rebind_blocked",
            "redirect_blocked",
            "redirect_denied",
            OTHER,
        ],
    )],
);

pub(super) static NETWORK_BYTES: Family = Family::counter(
    "palisade_network_bytes_total",
    "Bytes that allowed connections carried out of sandboxes and into them.",
    &[Label::fixed("direction", &["sent", "received"])],
)
.of(Unit::Bytes);

pub(super) static NAME_QUERIES: Family = Family::counter(
    "palisade_name_queries_total",
    "Names that were looked up, by what was answered.",
    &[Label::fixed(
        "answer",
        &["noerror", "nxdomain", "refused", "servfail", "formerr", "notimp", OTHER],
    )],
);

pub(super) static SUSPECTED_NAMES: Family = Family::counter(
    "palisade_suspected_names_total",
    "Names that were looked up and look as if they carried data.",
    &[],
);

pub(super) static RUNS: Family = Family::counter(
    "palisade_runs_total",
    "Runs asked for, by how they ended; one that was refused or failed made no sandbox.",
    &[Label::fixed(
        "outcome",
        &[
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
        ],
    )],
);

pub(super) static LIMITS_HIT: Family = Family::counter(
    "palisade_limits_hit_total",
    "Runs that came up against a limit, by the policy key of the limit.",
    &[Label::fixed(
        "limit",
        &[
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
        ],
    )],
);

pub(super) static TELEMETRY_LOST: Family = Family::counter(
    "palisade_telemetry_lost_total",
    "Spans and metrics that were not sent by OTLP, as far as it was known when the run ended.",
    &[Label::fixed("reason", &["queue-full", "not-sent"])],
);

/// In the order of output.
pub(super) static TABLE: [&Family; 26] = [
    &SANDBOXES_CREATED,
    &SANDBOX_LIFETIME,
    &SETUP,
    &SESSION_COMMANDS,
    &POLICY_VIOLATIONS,
    &ESCAPE_ATTEMPTS,
    &ESCAPE_RESPONSES,
    &QUARANTINED,
    &CPU,
    &PEAK_MEMORY,
    &IO_BYTES,
    &IO_OPERATIONS,
    &BLOCKED_SYSCALLS,
    &CLEANUPS,
    &SESSIONS_SWEPT,
    &DECISIONS,
    &QUESTIONS,
    &QUESTION_WAIT,
    &HOST_DECISIONS,
    &CONNECTIONS,
    &NETWORK_BYTES,
    &NAME_QUERIES,
    &SUSPECTED_NAMES,
    &RUNS,
    &LIMITS_HIT,
    &TELEMETRY_LOST,
];

impl Family {
    const fn counter(name: &'static str, help: &'static str, labels: &'static [Label]) -> Self {
        Self { name, help, labels, shape: Shape::Counter, unit: Unit::Times }
    }

    const fn of(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }
}

impl Label {
    const fn fixed(name: &'static str, values: &'static [&'static str]) -> Self {
        Self { name, values: Values::Fixed(values) }
    }

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
