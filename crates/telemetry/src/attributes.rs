//! The names of attributes, in one place: those of OpenTelemetry's semantic conventions where there is one, and ours with `palisade.` before
//! it. `docs/telemetry.md` is tested against this list.

/// All of them.
pub mod names {
    // Semantic conventions: process, CLI programs, error, server, file, and of the Model Context Protocol.
    pub const EXECUTABLE_NAME: &str = "process.executable.name";
    pub const EXIT_CODE: &str = "process.exit.code";
    pub const PID: &str = "process.pid";
    pub const COMMAND_LINE: &str = "process.command_line";
    pub const ERROR_TYPE: &str = "error.type";
    pub const SERVER_ADDRESS: &str = "server.address";
    pub const SERVER_PORT: &str = "server.port";
    pub const FILE_PATH: &str = "file.path";
    pub const MCP_METHOD: &str = "mcp.method.name";
    pub const MCP_PROTOCOL: &str = "mcp.protocol.version";
    pub const MCP_REQUEST: &str = "jsonrpc.request.id";
    pub const OPERATION: &str = "gen_ai.operation.name";
    pub const TOOL_NAME: &str = "gen_ai.tool.name";
    pub const TRANSPORT: &str = "network.transport";

    // Ours.
    pub const SESSION: &str = "palisade.session.id";
    pub const COMMAND: &str = "palisade.command.number";
    pub const TOOL: &str = "palisade.tool";
    pub const LEVEL: &str = "palisade.sandbox.level";
    pub const MODE: &str = "palisade.sandbox.mode";
    pub const NETWORK_MODE: &str = "palisade.network.mode";
    pub const OUTCOME: &str = "palisade.outcome";
    pub const PROBES: &str = "palisade.self_check.probes";
    pub const SIGNAL: &str = "palisade.signal";
    pub const QUESTION: &str = "palisade.question.number";
    pub const DECISION: &str = "palisade.decision";
    pub const DECIDED_BY: &str = "palisade.decided_by";
    pub const ACCESS: &str = "palisade.access";
    pub const VERDICT: &str = "palisade.network.verdict";
    pub const COUNT: &str = "palisade.count";
    pub const LIMIT: &str = "palisade.limit";
    pub const INDICATOR: &str = "palisade.escape.indicator";
    pub const SEVERITY: &str = "palisade.escape.severity";

    /// For the table in the documentation.
    pub const ALL: &[&str] = &[
        EXECUTABLE_NAME,
        EXIT_CODE,
        PID,
        COMMAND_LINE,
        ERROR_TYPE,
        SERVER_ADDRESS,
        SERVER_PORT,
        FILE_PATH,
        MCP_METHOD,
        MCP_PROTOCOL,
        MCP_REQUEST,
        OPERATION,
        TOOL_NAME,
        TRANSPORT,
        SESSION,
        COMMAND,
        TOOL,
        LEVEL,
        MODE,
        NETWORK_MODE,
        OUTCOME,
        PROBES,
        SIGNAL,
        QUESTION,
        DECISION,
        DECIDED_BY,
        ACCESS,
        VERDICT,
        COUNT,
        LIMIT,
        INDICATOR,
        SEVERITY,
    ];
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn every_attribute_is_documented() {
        let page = include_str!("../../../docs/telemetry.md");
        for name in names::ALL {
            assert!(page.contains(&format!("`{name}`")), "docs/telemetry.md should have `{name}`");
        }
    }
}
