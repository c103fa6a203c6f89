//! Templates of E2B are images of machines. Here one is a policy: `base` is the user's own, every other name is that of a preset.

use crate::error::ApiError;
use axum::http::StatusCode;
use palisade_policy::presets;

/// E2B's own first template.
const BASE: &str = "base";

/// The presets that a template stands for.
pub(crate) fn presets_of(template: &str) -> Result<Vec<String>, ApiError> {
    let names = || presets().iter().map(|preset| preset.name);
    match template {
        "" | BASE => Ok(Vec::new()),
        name if names().any(|known| known == name) => Ok(vec![name.to_owned()]),
        name => {
            let known = names().collect::<Vec<_>>().join(", ");
            Err(ApiError::new(
                StatusCode::NOT_FOUND,
                format!("there is no template `{name}` here: use `{BASE}`, or a preset: {known}"),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::presets_of;

    #[test]
    fn a_template_is_the_users_policy_or_a_preset() {
        assert_eq!(presets_of("base").unwrap(), Vec::<String>::new());
        assert_eq!(presets_of("strict").unwrap(), ["strict"]);
        assert!(presets_of("code-interpreter-v1").is_err());
    }
}
