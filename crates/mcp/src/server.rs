//! The protocol's side of a server: which tools there are, and a call from its beginning to its answer, in both eras.
//!
//! Up to revision 2025-11-25 a server asks a person by a request of its own while the call goes on. From 2026-07-28 on it answers that input
//! is required, and the client repeats the call with it (`parked.rs`), or the call becomes a task (`tasks.rs`).

use crate::asking::{CallClient, Elicitation, PROGRESS};
use crate::call::{CallEvent, RunningCall};
use crate::calls::ServerCalls;
use crate::context::Confirmation;
use crate::elicitation::{ElicitationMode, ElicitationModes};
use crate::options::AskWhom;
use crate::parked::{self, Asked, ParkedCall};
use crate::questions::{answer_of, confirmation_form, is_confirmed, is_opened};
use crate::spans::CallTrace;
use crate::state::ServerState;
use crate::tasks::BadUpdate;
use crate::tools::{self, BadCall, ToolCall, ToolError, tools};
use palisade_service::ProblemKind;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams,
    CompleteRequestMethod, CompleteRequestParams, CompleteResult, CreateTaskResult, ElicitRequest,
    ElicitRequestParams, ElicitResult, ErrorCode, GetTaskParams, GetTaskResult, Implementation,
    InputRequest, InputRequests, InputRequiredResult, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ServerCapabilities, ServerConfig, Tool, UpdateTaskParams,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{interval, sleep_until};

/// When a call becomes a task, for clients that know them.
const TASK_AFTER: Duration = Duration::from_secs(10);
/// The one request for input of a call.
const INPUT: &str = "approval";

const INSTRUCTIONS: &str = "Tools that work in a sandbox of Palisade, in the user's project. Commands and files are limited by its policy: what is denied stays denied \
until a person allows it, and the answer says how. Do not work around a denial; tell the user. sandbox_status shows the sandbox; if it has a \
transaction, changes reach the project only when they are applied.";

#[derive(Clone, Debug)]
pub(crate) struct McpServer(pub(crate) Arc<ServerCalls>);

/// What a client can do for one call.
#[derive(Clone, Copy, Debug)]
struct ClientSkills {
    /// Ask a person.
    modes: ElicitationModes,
    /// Revision 2026-07-28 or later.
    is_stateless: bool,
    knows_tasks: bool,
}

impl ClientSkills {
    fn of(server: &ServerState, context: &RequestContext<RoleServer>) -> Self {
        let capabilities = context.client_capabilities();
        let declared = ElicitationModes::of(capabilities.as_ref());
        let modes = match server.ask {
            AskWhom::Client => {
                ElicitationModes { url: declared.url && server.pages.are_reachable, ..declared }
            }
            AskWhom::Others => ElicitationModes::default(),
        };
        let version = context.protocol_version();
        let is_stateless =
            version.is_some_and(|it| it.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        Self {
            modes,
            is_stateless,
            knows_tasks: is_stateless && capabilities.is_some_and(|it| it.supports_tasks()),
        }
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tasks().build();
        let mut identity = Implementation::new("palisade", env!("CARGO_PKG_VERSION"));
        identity.title = Some("Palisade sandbox".to_owned());
        ServerConfig::new(capabilities).with_server_info(identity).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools(&self.0.state.tools)))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools(&self.0.state.tools).into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let known = self.get_tool(&request.name).is_some();
        let span = self.0.spans.begin(known.then_some(&*request.name), &context);
        let answer = self.answer(request, context, span.trace.clone()).await;
        self.0.spans.end(span, &answer);
        answer
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.0
            .tasks
            .get(&self.0.state, &request.task_id)
            .map(GetTaskResult::new)
            .ok_or_else(no_task)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let updated =
            self.0.tasks.update(&self.0.state, &request.task_id, &request.input_responses).await;
        updated.map_err(|why| match why {
            BadUpdate::UnknownTask => no_task(),
            BadUpdate::NotAsked => ErrorData::invalid_params("this task did not ask that", None),
        })
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if self.0.tasks.cancel(&request.task_id) { Ok(()) } else { Err(no_task()) }
    }

    // A method of a capability that is not declared does not exist (`MethodNotFoundError` of the schema). Left out here, these are
    // answered with an empty list.

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }
}

fn no_task() -> ErrorData {
    ErrorData::invalid_params("there is no such task", None)
}

fn too_many(text: &str) -> ToolError {
    ToolError::new(ProblemKind::Resource, text)
}

fn failed(error: ToolError) -> CallToolResult {
    tools::result(Err(error), &[])
}

impl McpServer {
    /// A call of a tool, or another request of one that goes on.
    async fn answer(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
        trace: CallTrace,
    ) -> Result<CallToolResponse, ErrorData> {
        let server = &self.0;
        let skills = ClientSkills::of(&server.state, &context);
        server.parked.sweep();
        let (call, may_be_task) = match &request.request_state {
            Some(sealed) => (self.take_up(sealed, &request).await?, false),
            None => match ToolCall::parse_offered(
                &request.name,
                request.arguments.clone(),
                &server.state.tools,
            ) {
                Ok(tool) => {
                    let may_be_task = skills.knows_tasks && tool.may_be_task();
                    (
                        RunningCall::start(&server.state, tool, skills.modes.any(), trace),
                        may_be_task,
                    )
                }
                Err(BadCall::UnknownTool) => {
                    let text = format!("there is no tool `{}`", request.name);
                    return Err(ErrorData::new(ErrorCode::INVALID_PARAMS, text, None));
                }
                Err(BadCall::Arguments(text)) => return Ok(failed(ToolError::wrong(text)).into()),
            },
        };
        self.follow(call, &request, &context, skills, may_be_task).await
    }

    /// A call that waited for a person, with the answer.
    async fn take_up(
        &self,
        sealed: &str,
        request: &CallToolRequestParams,
    ) -> Result<RunningCall, ErrorData> {
        let server = &self.0;
        let wrong = |text: String| ErrorData::invalid_params(text, None);
        let name = parked::open(&server.codec, sealed, request)
            .map_err(|error| wrong(format!("requestState: {error}")))?;
        let Some(ParkedCall { call, asked, .. }) = server.parked.take(&name) else {
            return Err(wrong("requestState: this call does not wait for an answer".to_owned()));
        };
        let response = request.input_responses.as_ref().and_then(|all| all.get(INPUT));
        let result =
            response.and_then(|it| serde_json::from_value::<ElicitResult>(it.clone()).ok());
        match (asked, result) {
            // It is answered on the page, or was. The call waits for that.
            (Asked::Question(_, ElicitationMode::Url), Some(result)) if is_opened(&result) => {}
            (Asked::Question(id, _), Some(result)) => {
                server.state.decide(id, &answer_of(&result)).await;
            }
            // Not answered: it is asked again.
            (Asked::Question(id, _), None) => server.state.questions.put_back(id),
            (Asked::Confirmation(asked), result) => {
                // Whoever waits for it may be gone.
                let _ = asked.answer.send(result.as_ref().is_some_and(is_confirmed));
            }
            (Asked::Page(_), Some(result)) if is_opened(&result) => {}
            // Nobody can answer it any more, which is a no.
            (Asked::Page(page), _) => server.state.pages.withdraw(&page),
        }
        Ok(call)
    }

    /// Until there is an answer, asking a person and telling the client meanwhile that it goes on.
    async fn follow(
        &self,
        mut call: RunningCall,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        skills: ClientSkills,
        may_be_task: bool,
    ) -> Result<CallToolResponse, ErrorData> {
        let client = CallClient::new(&self.0.state, context);
        let mut ticks = interval(PROGRESS);
        ticks.tick().await;
        loop {
            tokio::select! {
                event = call.next() => match event {
                    CallEvent::Done(result) => return Ok(result.into()),
                    CallEvent::Confirm(asked) if skills.is_stateless => {
                        return self.park_confirmation(call, asked, skills, request);
                    }
                    CallEvent::Confirm(asked) => client.confirm(&call, asked, skills.modes).await,
                },
                () = context.ct.cancelled() => {
                    return Err(ErrorData::internal_error("the call was cancelled", None));
                }
                (question, mode) = self.0.state.questions.next(skills.modes), if skills.modes.any() => {
                    let Some(asked) = Elicitation::of(&self.0.state, &question, mode) else { continue };
                    if skills.is_stateless {
                        let waits_for = Asked::Question(question.id, mode);
                        return self.park(call, waits_for, asked.parameters, request);
                    }
                    client.ask(&call, question.id, asked).await;
                }
                _ = ticks.tick() => client.tell_progress().await,
                () = sleep_until(client.began + TASK_AFTER), if may_be_task => {
                    return match self.0.tasks.begin(call, skills.modes) {
                        Some(task) => Ok(CreateTaskResult::new(task).into()),
                        None => Ok(failed(too_many("too many tasks are there; end some")).into()),
                    };
                }
            }
        }
    }

    fn park(
        &self,
        call: RunningCall,
        asked: Asked,
        form: ElicitRequestParams,
        request: &CallToolRequestParams,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(name) = self.0.parked.park(call, asked) else {
            return Ok(failed(too_many("too many calls wait for an answer; try again")).into());
        };
        let input = InputRequest::Elicitation(ElicitRequest::new(form));
        let inputs = InputRequests::from([(INPUT.to_owned(), input)]);
        let state = parked::seal(&self.0.codec, &name, request);
        Ok(InputRequiredResult::new(Some(inputs), Some(state)).into())
    }

    fn park_confirmation(
        &self,
        call: RunningCall,
        asked: Confirmation,
        skills: ClientSkills,
        request: &CallToolRequestParams,
    ) -> Result<CallToolResponse, ErrorData> {
        let state = &self.0.state;
        let parked = match skills.modes.form {
            true => {
                confirmation_form(&asked.message).map(|form| (Asked::Confirmation(asked), form))
            }
            false => state
                .pages
                .offer_confirmation(state, &asked.message, asked.answer)
                .map(|page| (Asked::Page(page.elicitation_id), page.request)),
        };
        match parked {
            Some((waits_for, form)) => self.park(call, waits_for, form, request),
            None => Ok(failed(too_many(
                "this cannot be asked at the client: too many questions wait for an answer, or the sandbox has the host's network, from which a page would be reached",
            ))
            .into()),
        }
    }
}
