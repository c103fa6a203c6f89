//! Every path and method, and the document that describes them. Both are made of the same handlers: what is served is what is
//! described.

use crate::problem::Problem;
use crate::service::Shared;
use crate::{
    approvals, audit, checkpoints, commands, files, health, metrics, page, recordings, runs,
    sandboxes, tools, transactions, usage,
};
use axum::Router;
use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::http::header;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, on};
use std::collections::BTreeMap;
use utoipa::openapi::path::{HttpMethod, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, Content, InfoBuilder, OpenApi, OpenApiBuilder, PathsBuilder, Ref, RefOr,
    ResponseBuilder,
};
use utoipa::{Path as Described, ToSchema as _};

/// What the document calls the token.
const TOKEN: &str = "token";

/// The paths and what answers them, as far as they were added.
struct Routes {
    router: Router<Shared>,
    described: BTreeMap<String, PathItem>,
    schemas: Vec<(String, RefOr<utoipa::openapi::Schema>)>,
}

impl Routes {
    fn new() -> Self {
        let mut schemas =
            vec![(Problem::name().into_owned(), <Problem as utoipa::PartialSchema>::schema())];
        Problem::schemas(&mut schemas);
        Self { router: Router::new(), described: BTreeMap::new(), schemas }
    }

    /// `P` is the description that stands at the handler.
    #[expect(clippy::needless_pass_by_value, reason = "a handler is a function, given by its name")]
    fn add<P, H, T>(mut self, handler: H) -> Self
    where
        P: Described + utoipa::__dev::SchemaReferences,
        H: Handler<T, Shared>,
        T: 'static,
    {
        let path = P::path();
        for method in P::methods() {
            let (filter, method) = filter(method);
            let mut operation = P::operation();
            let problem = Content::new(Some(RefOr::Ref(Ref::from_schema_name(Problem::name()))));
            let response = ResponseBuilder::new()
                .description("It was not done; why is said as RFC 9457 has it")
                .content("application/problem+json", problem)
                .build();
            let responses = &mut operation.responses.responses;
            responses.entry("default".to_owned()).or_insert(RefOr::T(response));
            for response in responses.values_mut() {
                // OpenAPI wants a description of each.
                if let RefOr::T(response) = response
                    && response.description.is_empty()
                {
                    response.description = "Done".to_owned();
                }
            }
            let item = PathItem::new(method, operation);
            self.described.entry(path.clone()).or_default().merge_operations(item);
            self.router = self.router.route(&path, on(filter, handler.clone()));
        }
        P::schemas(&mut self.schemas);
        self
    }
}

fn filter(method: HttpMethod) -> (MethodFilter, HttpMethod) {
    let filter = match method {
        HttpMethod::Get => MethodFilter::GET,
        HttpMethod::Post => MethodFilter::POST,
        HttpMethod::Delete => MethodFilter::DELETE,
        HttpMethod::Put => MethodFilter::PUT,
        HttpMethod::Patch => MethodFilter::PATCH,
        _ => MethodFilter::OPTIONS,
    };
    (filter, method)
}

fn all() -> Routes {
    Routes::new()
        .add::<sandboxes::__path_create_sandbox, _, _>(sandboxes::create_sandbox)
        .add::<sandboxes::__path_list_sandboxes, _, _>(sandboxes::list_sandboxes)
        .add::<sandboxes::__path_get_sandbox, _, _>(sandboxes::get_sandbox)
        .add::<sandboxes::__path_end_sandbox, _, _>(sandboxes::end_sandbox)
        .add::<sandboxes::__path_extend_sandbox, _, _>(sandboxes::extend_sandbox)
        .add::<sandboxes::__path_fork_sandbox, _, _>(sandboxes::fork_sandbox)
        .add::<commands::__path_start_command, _, _>(commands::start_command)
        .add::<runs::__path_start_run, _, _>(runs::start_run)
        .add::<commands::__path_list_commands, _, _>(commands::list_commands)
        .add::<commands::__path_get_command, _, _>(commands::get_command)
        .add::<commands::__path_cancel_command, _, _>(commands::cancel_command)
        .add::<commands::__path_read_output, _, _>(commands::read_output)
        .add::<commands::__path_write_stdin, _, _>(commands::write_stdin)
        .add::<commands::__path_signal_command, _, _>(commands::signal_command)
        .add::<commands::__path_resize_terminal, _, _>(commands::resize_terminal)
        .add::<files::__path_stat_file, _, _>(files::stat_file)
        .add::<files::__path_remove_file, _, _>(files::remove_file)
        .add::<files::__path_read_file, _, _>(files::read_file)
        .add::<files::__path_write_file, _, _>(files::write_file)
        .add::<files::__path_list_directory, _, _>(files::list_directory)
        .add::<files::__path_make_directory, _, _>(files::make_directory)
        .add::<files::__path_rename_file, _, _>(files::rename_file)
        .add::<files::__path_watch_directory, _, _>(files::watch_directory)
        .add::<transactions::__path_show_diff, _, _>(transactions::show_diff)
        .add::<transactions::__path_apply_changes, _, _>(transactions::apply_changes)
        .add::<transactions::__path_discard_changes, _, _>(transactions::discard_changes)
        .add::<checkpoints::__path_list_checkpoints, _, _>(checkpoints::list_checkpoints)
        .add::<checkpoints::__path_make_checkpoint, _, _>(checkpoints::make_checkpoint)
        .add::<checkpoints::__path_roll_back, _, _>(checkpoints::roll_back)
        .add::<approvals::__path_list_approvals, _, _>(approvals::list_approvals)
        .add::<approvals::__path_follow_approvals, _, _>(approvals::follow_approvals)
        .add::<approvals::__path_decide_approval, _, _>(approvals::decide_approval)
        .add::<audit::__path_read_audit, _, _>(audit::read_audit)
        .add::<audit::__path_follow_audit, _, _>(audit::follow_audit)
        .add::<usage::__path_read_usage, _, _>(usage::read_usage)
        .add::<recordings::__path_list_recordings, _, _>(recordings::list_recordings)
        .add::<recordings::__path_read_recording, _, _>(recordings::read_recording)
        .add::<tools::__path_list_tools, _, _>(tools::list_tools)
        .add::<tools::__path_declare_tool, _, _>(tools::declare_tool)
        .add::<tools::__path_get_tool, _, _>(tools::get_tool)
        .add::<tools::__path_remove_tool, _, _>(tools::remove_tool)
        .add::<tools::__path_run_tool, _, _>(tools::run_tool)
        .add::<page::__path_log_in, _, _>(page::log_in)
        .add::<page::__path_log_out, _, _>(page::log_out)
        .add::<metrics::__path_read_metrics, _, _>(metrics::read_metrics)
        .add::<health::__path_healthz, _, _>(health::healthz)
        .add::<health::__path_readyz, _, _>(health::readyz)
        .add::<__path_read_document, _, _>(read_document)
}

/// Everything that `sandbox serve` answers.
pub(crate) fn requests(service: Shared) -> Router {
    page::add_to(all().router)
        .fallback(|| async {
            Problem::not_found("there is nothing at this path; see /v1/openapi.json")
        })
        .method_not_allowed_fallback(|| async { Problem::no_such_method() })
        .with_state(service)
}

/// The same behind the check of who may ask.
pub(crate) fn guarded(router: Router, service: Shared) -> Router {
    router.layer(middleware::from_fn_with_state(service, check_access))
}

/// Before anything else: who may not ask learns nothing, not even what there is.
async fn check_access(State(service): State<Shared>, request: Request, next: Next) -> Response {
    let peer = request.extensions().get().copied();
    let (method, uri) = (request.method(), request.uri());
    let protection = page::protection(method, uri.path());
    let checked = match peer {
        Some(peer) => service.access.check(peer, (method, uri), request.headers(), protection),
        None => Err(Problem::internal("nobody knows where the request comes from")),
    };
    let mut response = match checked {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    page::protect(response.headers_mut());
    service.counters.answered(response.status());
    response
}

/// Read this document
#[utoipa::path(get, path = "/v1/openapi.json", tag = "server", responses((status = 200, body = Object)))]
pub(crate) async fn read_document() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], document()).into_response()
}

/// The description of the interface (OpenAPI 3.1), as JSON.
pub fn document() -> String {
    let Routes { described, mut schemas, .. } = all();
    schemas.sort_by(|(one, _), (other, _)| one.cmp(other));
    schemas.dedup_by(|(one, _), (other, _)| one == other);
    let info = InfoBuilder::new()
        .title("Palisade")
        .version("1")
        .description(Some("Sandboxes over HTTP: `sandbox serve`. docs/service.md explains it."))
        .build();
    let paths = described
        .into_iter()
        .fold(PathsBuilder::new(), |paths, (path, item)| paths.path(path, item));
    let by_token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
    let by_token =
        by_token.description(Some("Over TCP only; at a UNIX socket the same user is answered"));
    let components = ComponentsBuilder::new()
        .schemas_from_iter(schemas)
        .security_scheme(TOKEN, SecurityScheme::Http(by_token.build()))
        .build();
    // Either nothing or the token.
    let security = [SecurityRequirement::default(), SecurityRequirement::new(TOKEN, [""; 0])];
    let document: OpenApi = OpenApiBuilder::new()
        .info(info)
        .paths(paths.build())
        .components(Some(components))
        .security(Some(security))
        .build();
    // Texts, numbers and maps with texts as keys.
    document.to_pretty_json().unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use super::document;
    use serde_json::Value;

    /// `sandbox generate openapi docs/openapi.json` writes it anew.
    #[test]
    fn the_committed_document_is_the_one_that_is_served() {
        let committed = include_str!("../../../docs/openapi.json");
        assert!(committed == document(), "run `sandbox generate openapi docs/openapi.json`");
    }

    #[test]
    fn every_reference_in_the_document_leads_somewhere() {
        let document: Value = serde_json::from_str(&document()).unwrap();
        assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
        let mut open = vec![&document];
        while let Some(value) = open.pop() {
            if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
                let pointer = reference.strip_prefix('#').unwrap();
                assert!(document.pointer(pointer).is_some(), "{reference}");
            }
            match value {
                Value::Object(members) => open.extend(members.values()),
                Value::Array(items) => open.extend(items),
                _ => {}
            }
        }
    }

    #[test]
    fn every_operation_has_a_name_of_its_own_and_says_how_it_fails() {
        let document: Value = serde_json::from_str(&document()).unwrap();
        let paths = document["paths"].as_object().unwrap();
        let operations = paths.values().flat_map(|item| item.as_object().unwrap().values());
        let mut names = Vec::new();
        for operation in operations {
            names.push(operation["operationId"].as_str().unwrap());
            assert!(operation["responses"]["default"].is_object(), "{operation}");
            assert!(operation["summary"].is_string(), "{operation}");
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!((names.len(), count), (48, 48));
    }
}
