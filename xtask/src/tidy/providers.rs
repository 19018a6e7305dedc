//! Only the models crate knows one provider from another. Elsewhere a provider is a row of the catalogue, so
//! code that branches on its name would have to be found again for every new one.

use super::report::Problem;
use super::source::SourceFile;
use super::words::contains_word;

const RULE: &str = "no-provider-match";

/// Names that would be matched on, as they are written in catalogues.
const PROVIDERS: &[&str] = &[
    "anthropic",
    "azure",
    "bedrock",
    "deepseek",
    "gemini",
    "google",
    "groq",
    "mistral",
    "ollama",
    "openai",
    "openrouter",
    "vertex",
    "xai",
];

/// Reports patterns and comparisons that name a provider outside the models crate.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in files {
        if file.crate_name().is_none_or(|name| name == "locum-models") {
            continue;
        }
        for (line, code) in file.shipped_lines_with_literals() {
            if branches_on_provider(code) {
                let message = "a decision by provider belongs in locum-models; \
                               describe the difference in the catalogue and read it here";
                problems.push(Problem::failure(&file.path, line, RULE, message));
            }
        }
    }
    problems
}

fn branches_on_provider(code: &str) -> bool {
    let pattern = match code.split_once("=>") {
        Some((pattern, _)) => pattern,
        // An alternative of a pattern that spans lines.
        None if code.trim_start().starts_with("| ") => code,
        None => "",
    };
    let tests_pattern = contains_word(code, "matches!") || contains_word(code, "let Provider::");
    let matches_type = contains_word(pattern, "Provider::") || (tests_pattern && contains_word(code, "Provider::"));
    matches_type
        || PROVIDERS.iter().any(|provider| {
            let literal = format!("\"{provider}\"");
            let compared = [format!("== {literal}"), format!("!= {literal}")];
            let code = code.to_lowercase();
            pattern.to_lowercase().contains(&literal)
                || (tests_pattern && code.contains(&literal))
                || compared.iter().any(|comparison| code.contains(comparison))
        })
}

#[cfg(test)]
mod tests {
    use super::super::testing::found;
    use super::*;

    #[test]
    fn branching_on_a_provider_is_refused_outside_the_models_crate() {
        for code in [
            "\"openai\" => 1,",
            "Some(\"x\" | \"Anthropic\") => 1,",
            "| \"gemini\"",
            "Provider::Gemini { .. } => 1,",
            "models::Provider::OpenAi => 1,",
            "if let Provider::OpenAi = provider {",
            "matches!(provider, Provider::OpenAi)",
            "if name == \"openai\" {",
        ] {
            let path = "crates/locum/src/desk.rs";
            assert_eq!(found(check, path, code), [(1, RULE)], "{code}");
            let path = "crates/locum-models/src/catalogue.rs";
            assert_eq!(found(check, path, code), [], "{code}");
        }
    }

    #[test]
    fn naming_a_provider_is_not_branching_on_it() {
        for code in [
            "let name = \"openai\";",
            "Kind::Chat => \"openai\",",
            "// \"openai\" => 1",
            "\"openair\" => 1,",
            "fn f(provider: Provider) -> Provider {",
        ] {
            assert_eq!(found(check, "crates/locum/src/desk.rs", code), [], "{code}");
        }
    }
}
