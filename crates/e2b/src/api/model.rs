//! What the API says about sandboxes.

use crate::store::KeptSandbox;
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;

/// The version of E2B's server in a sandbox that ours does the work of: it decides what the clients ask for. From 0.6.4 on they may
/// ask for everything that we have.
pub(crate) const ENVD_VERSION: &str = "0.6.4";
/// E2B names the machine that a sandbox runs on.
const CLIENT_ID: &str = "palisade";

/// How to reach a sandbox.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reachable {
    #[serde(rename = "templateID")]
    template_id: String,
    alias: String,
    #[serde(rename = "sandboxID")]
    sandbox_id: String,
    #[serde(rename = "clientID")]
    client_id: &'static str,
    envd_version: &'static str,
    envd_access_token: String,
    /// Ports of a sandbox have no addresses outside.
    traffic_access_token: Option<String>,
    domain: Option<String>,
}

impl Reachable {
    pub(crate) fn new(kept: &KeptSandbox, envd_access_token: String) -> Self {
        Self {
            template_id: kept.template.clone(),
            alias: kept.template.clone(),
            sandbox_id: kept.id.clone(),
            client_id: CLIENT_ID,
            envd_version: ENVD_VERSION,
            envd_access_token,
            traffic_access_token: None,
            domain: None,
        }
    }
}

/// What is known about a sandbox that runs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    #[serde(rename = "templateID")]
    template_id: String,
    alias: String,
    #[serde(rename = "sandboxID")]
    pub(crate) sandbox_id: String,
    #[serde(rename = "clientID")]
    client_id: &'static str,
    started_at: Timestamp,
    end_at: Timestamp,
    cpu_count: u64,
    #[serde(rename = "memoryMB")]
    memory_mb: u64,
    #[serde(rename = "diskSizeMB")]
    disk_size_mb: u64,
    state: &'static str,
    envd_version: &'static str,
    metadata: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allow_internet_access: Option<bool>,
    /// Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) envd_access_token: Option<String>,
}

impl From<KeptSandbox> for Listed {
    fn from(kept: KeptSandbox) -> Self {
        let host = HostSize::of(&kept);
        Self {
            template_id: kept.template.clone(),
            alias: kept.template,
            sandbox_id: kept.id,
            client_id: CLIENT_ID,
            started_at: kept.started_at,
            end_at: kept.end_at,
            cpu_count: host.cpus,
            memory_mb: host.memory_mb,
            disk_size_mb: host.disk_mb,
            state: "running",
            envd_version: ENVD_VERSION,
            metadata: kept.metadata,
            allow_internet_access: kept.allow_internet_access,
            envd_access_token: None,
        }
    }
}

/// A sandbox has no machine of its own: this is what it shares.
struct HostSize {
    cpus: u64,
    memory_mb: u64,
    disk_mb: u64,
}

impl HostSize {
    fn of(kept: &KeptSandbox) -> Self {
        let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let memory_kb = memory.lines().find_map(|line| {
            line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok()
        });
        let disk = rustix::fs::statvfs(&kept.home).ok();
        Self {
            cpus: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
            memory_mb: memory_kb.unwrap_or(0_u64) >> 10,
            disk_mb: disk.map_or(0, |disk| disk.f_blocks.saturating_mul(disk.f_frsize) >> 20),
        }
    }
}
