//! The one table of limits: option, policy key, unit and texts of each.
//!
//! Parser, schema, command line, plan, report and `top` all read this table. The plan decides which limits a
//! run has, what enforces them and how strictly.

use crate::units;
use serde::Serialize;

/// The enum, and the list of all its variants, from one list.
macro_rules! limit_kinds {
    ($($(#[$about:meta])* $kind:ident,)+) => {
        /// What can be limited.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum LimitKind {
            $($(#[$about])* $kind,)+
        }

        impl LimitKind {
            pub const ALL: [Self; [$(stringify!($kind)),+].len()] = [$(Self::$kind),+];
        }
    };
}

limit_kinds! {
    Memory,
    /// Above it the run is slowed down, not killed.
    MemoryHigh,
    Swap,
    Cpus,
    CpuSet,
    CpuTime,
    Processes,
    Threads,
    OpenFiles,
    FileSize,
    Disk,
    Inodes,
    IoBandwidth,
    IoOperations,
    WallTime,
    Output,
}

/// What the number of a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Bytes,
    BytesPerSecond,
    OperationsPerSecond,
    Milliseconds,
    MilliCpus,
    /// The number of CPUs in a set.
    CpuCount,
    Count,
}

/// The measurement of a running sandbox that is compared with the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageField {
    Memory,
    CpuTime,
    /// The kernel counts threads, for the limit of processes as well.
    Threads,
    Age,
}

struct Row {
    option: &'static str,
    key: &'static str,
    unit: Unit,
    /// The requirement that the limit implements, and what the plan promises.
    promise: (&'static str, &'static str),
    /// The description of the key in the JSON Schema.
    about: &'static str,
    /// The message when the limit is used up, if that can explain how a run ended.
    exhausted: Option<&'static str>,
    usage: Option<UsageField>,
}

const fn row(
    option: &'static str,
    key: &'static str,
    unit: Unit,
    requirement: &'static str,
    promise: &'static str,
    about: &'static str,
) -> Row {
    Row { option, key, unit, promise: (requirement, promise), about, exhausted: None, usage: None }
}

impl Row {
    const fn exhausted(self, words: &'static str) -> Self {
        Self { exhausted: Some(words), ..self }
    }

    const fn measured_by(self, usage: UsageField) -> Self {
        Self { usage: Some(usage), ..self }
    }
}

impl LimitKind {
    #[rustfmt::skip] // A table: one limit two lines or three.
    const fn row(self) -> Row {
        match self {
            Self::Memory => row("memory", "resources.maxMemory", Unit::Bytes, "RES-1", "memory is limited",
                "Memory of the whole run, in bytes; a run that needs more is killed.")
                .exhausted("out of memory").measured_by(UsageField::Memory),
            Self::MemoryHigh => row("memory-high", "resources.memoryHigh", Unit::Bytes, "RES-1", "the run is slowed down before it reaches the memory limit",
                "Memory above which the run is slowed down and its pages are reclaimed, in bytes; nothing is killed."),
            Self::Swap => row("swap", "resources.maxSwap", Unit::Bytes, "RES-1", "swap is limited",
                "Swap in addition to maxMemory, in bytes; none by default."),
            Self::Cpus => row("cpus", "resources.cpus", Unit::MilliCpus, "RES-1", "the share of the CPUs is limited",
                "CPUs that all processes together may use, fractions allowed."),
            Self::CpuSet => row("cpuset", "resources.cpuSet", Unit::CpuCount, "RES-2", "only the named CPUs are used",
                "The only CPUs the run may use, by number, such as 0-3,5."),
            Self::CpuTime => row("cpu-time", "resources.maxCPU", Unit::Milliseconds, "RES-2", "CPU time is limited",
                "CPU time of all processes together, in milliseconds.")
                .exhausted("out of CPU time").measured_by(UsageField::CpuTime),
            Self::Processes => row("pids", "process.maxProcesses", Unit::Count, "PROC-2", "the number of processes is limited",
                "Number of processes.")
                .exhausted(NO_MORE_PROCESSES).measured_by(UsageField::Threads),
            Self::Threads => row("threads", "resources.maxThreads", Unit::Count, "RES-2", "the number of threads is limited",
                "Number of threads.")
                .exhausted(NO_MORE_PROCESSES).measured_by(UsageField::Threads),
            Self::OpenFiles => row("open-files", "resources.maxFileDescriptors", Unit::Count, "RES-2", "open files are limited",
                "Open files of one process."),
            Self::FileSize => row("file-size", "filesystem.maxFileSize", Unit::Bytes, "FS-6", "the size of a file is limited",
                "Largest single file, in bytes."),
            Self::Disk => row("disk", "filesystem.maxTotalSize", Unit::Bytes, "FS-6", "disk space is limited",
                "Disk space that the run adds, in bytes.")
                .exhausted(NO_ROOM),
            Self::Inodes => row("inodes", "filesystem.maxInodes", Unit::Count, "FS-6", "the number of files is limited",
                "Files and directories that the run adds.")
                .exhausted(NO_ROOM),
            Self::IoBandwidth => row("io-bandwidth", "resources.maxIOBandwidth", Unit::BytesPerSecond, "RES-1", "bytes read and written in a second are limited",
                "Bytes per second, read and written."),
            Self::IoOperations => row("iops", "resources.maxIOPS", Unit::OperationsPerSecond, "RES-1", "reads and writes in a second are limited",
                "I/O operations per second."),
            Self::WallTime => row("timeout", "resources.timeout", Unit::Milliseconds, "RES-2", "the run ends in time",
                "Wall time, in milliseconds (exit 124).")
                .measured_by(UsageField::Age),
            Self::Output => row("max-output", "resources.maxOutputSize", Unit::Bytes, "RES-2", "output is cut to its beginning and its end",
                "Bytes of output kept, of each stream.")
                .exhausted("output was cut"),
        }
    }

    /// The policy key that sets it.
    pub const fn key(self) -> &'static str {
        self.row().key
    }

    /// The option that sets it, without dashes. Users know the limit by this name.
    pub const fn name(self) -> &'static str {
        self.row().option
    }

    /// The limit of this name, if this version has it.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|limit| limit.name() == name)
    }

    pub const fn unit(self) -> Unit {
        self.row().unit
    }

    pub(crate) const fn about(self) -> &'static str {
        self.row().about
    }

    /// The number of the requirement, and the promise.
    pub fn promise(self) -> (&'static str, &'static str) {
        self.row().promise
    }

    /// The message when the limit is used up, for limits that can explain how a run ended.
    pub fn exhausted(self) -> Option<&'static str> {
        self.row().exhausted
    }

    /// The measurement that shows how much of it is used, if it can be measured while the command runs.
    pub fn usage(self) -> Option<UsageField> {
        self.row().usage
    }
}

const NO_MORE_PROCESSES: &str = "no more processes could be started";
const NO_ROOM: &str = "no room left for files";

impl Unit {
    /// Exact, in the units that a document accepts.
    pub fn show(self, value: u64) -> String {
        match self {
            Self::Bytes => units::show_size(value),
            Self::BytesPerSecond => format!("{}/s", units::show_size(value)),
            Self::OperationsPerSecond => format!("{value}/s"),
            Self::Milliseconds => units::show_millis(value),
            Self::MilliCpus => format!("{} CPUs", units::show_cpus(value)),
            Self::CpuCount => format!("{value} CPUs"),
            Self::Count => value.to_string(),
        }
    }
}

#[cfg(test)]
#[path = "limit_tests.rs"]
mod tests;
