//! The steps of CI, as a table. What runs on a desk and what runs on a server is the same list in the same
//! order, cheapest first, so that a mistake is reported as early as it can be.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Error, Result, ensure};

use crate::{api, cargo_command, foreign, tidy};

/// Which rows of the table to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Everything that needs no more than the Rust toolchain.
    Standard,
    /// Also the rows that need further tools.
    Full,
}

struct Step {
    name: &'static str,
    action: Action,
    full_only: bool,
}

enum Action {
    Cargo {
        arguments: &'static str,
        environment: &'static [(&'static str, &'static str)],
    },
    /// A command of this program, called without starting another process.
    Own {
        arguments: &'static str,
        run: fn(&Path) -> Result<()>,
    },
}

const STEPS: &[Step] = &[
    Step { name: "fmt", action: Action::Cargo { arguments: "fmt --all --check", environment: &[] }, full_only: false },
    Step { name: "tidy", action: Action::Own { arguments: "tidy", run: tidy::run }, full_only: false },
    Step { name: "api", action: Action::Own { arguments: "api", run: api::check }, full_only: false },
    Step {
        name: "clippy",
        action: Action::Cargo {
            arguments: "clippy --workspace --all-targets --locked -- -D warnings",
            environment: &[],
        },
        full_only: false,
    },
    Step {
        name: "test",
        action: Action::Cargo { arguments: "test --workspace --locked", environment: &[] },
        full_only: false,
    },
    Step {
        name: "doc",
        action: Action::Cargo {
            arguments: "doc --workspace --no-deps --locked",
            environment: &[("RUSTDOCFLAGS", "-D warnings")],
        },
        full_only: false,
    },
    Step { name: "python", action: Action::Own { arguments: "foreign python", run: foreign::python }, full_only: true },
    Step {
        name: "inspector",
        action: Action::Own { arguments: "foreign inspector", run: foreign::inspector },
        full_only: true,
    },
    Step {
        name: "conformance",
        action: Action::Own { arguments: "foreign conformance", run: foreign::conformance::suite },
        full_only: true,
    },
    Step {
        name: "servers",
        action: Action::Own { arguments: "foreign servers", run: foreign::servers::servers },
        full_only: true,
    },
    Step {
        name: "worktrees",
        action: Action::Cargo {
            arguments: "test --workspace --test durability --locked worktrees",
            environment: &[("LOCUM_TEST_LIVES", "300")],
        },
        full_only: true,
    },
    Step {
        name: "requests",
        action: Action::Own { arguments: "foreign requests", run: foreign::models::requests },
        full_only: true,
    },
    Step {
        name: "local-model",
        action: Action::Own { arguments: "foreign local-model", run: foreign::models::local_model },
        full_only: true,
    },
    Step {
        name: "witness",
        action: Action::Own { arguments: "foreign witness", run: foreign::witness::inert },
        full_only: true,
    },
    Step {
        name: "shells",
        action: Action::Own { arguments: "foreign shells", run: foreign::shells::complete },
        full_only: true,
    },
    Step {
        name: "dashboard",
        action: Action::Own { arguments: "foreign dashboard", run: foreign::dashboard::look },
        full_only: true,
    },
    Step {
        name: "api-tester",
        action: Action::Own { arguments: "foreign api-tester", run: foreign::api::tester },
        full_only: true,
    },
    Step {
        name: "crowd",
        action: Action::Cargo {
            arguments: "test --workspace --test serve --locked many_readers",
            environment: &[("LOCUM_TEST_CROWD", "200x1000")],
        },
        full_only: true,
    },
];

/// What became of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Passed(Duration),
    Failed(Duration),
    NotRun,
}

/// Runs the steps of `scope` in order, prints what each took, and fails with the first that fails.
pub(crate) fn run(root: &Path, scope: Scope) -> Result<()> {
    let steps = select(STEPS, scope);
    let (outcomes, failure) = run_until_failure(&steps, &mut |step| perform(root, &step.action));
    println!("\n{}", summary(&steps, &outcomes));
    let Some((step, error)) = failure else {
        return Ok(());
    };
    println!("\nto repeat {}: {}", step.name, command_line(&step.action));
    Err(error.context(format!("ci stopped at {}", step.name)))
}

fn select(steps: &'static [Step], scope: Scope) -> Vec<&'static Step> {
    steps.iter().filter(|step| scope == Scope::Full || !step.full_only).collect()
}

/// One outcome per step, and the step that stopped the run with its error if there was one.
fn run_until_failure<'a>(
    steps: &[&'a Step],
    perform: &mut dyn FnMut(&Step) -> Result<()>,
) -> (Vec<Outcome>, Option<(&'a Step, Error)>) {
    let mut outcomes = vec![Outcome::NotRun; steps.len()];
    for (index, step) in steps.iter().enumerate() {
        let command_line = command_line(&step.action);
        println!("\n==> [{}/{}] {}: {command_line}", index + 1, steps.len(), step.name);
        let started = Instant::now();
        let result = perform(step);
        let elapsed = started.elapsed();
        if let Err(error) = result {
            outcomes[index] = Outcome::Failed(elapsed);
            return (outcomes, Some((step, error)));
        }
        outcomes[index] = Outcome::Passed(elapsed);
        println!("    {} passed in {}", step.name, seconds(elapsed));
    }
    (outcomes, None)
}

fn perform(root: &Path, action: &Action) -> Result<()> {
    match action {
        Action::Own { run, .. } => run(root),
        Action::Cargo { arguments, environment } => {
            let status = cargo_command(root)
                .args(arguments.split(' '))
                .envs(environment.iter().copied())
                .status()
                .context("cargo could not be started")?;
            ensure!(status.success(), "cargo ended with {status}");
            Ok(())
        }
    }
}

/// The line to type in a shell to run one step alone.
fn command_line(action: &Action) -> String {
    match action {
        Action::Own { arguments, .. } => format!("cargo xtask {arguments}"),
        Action::Cargo { arguments, environment } => {
            let variables: String = environment.iter().map(|(name, value)| format!("{name}=\"{value}\" ")).collect();
            format!("{variables}cargo {arguments}")
        }
    }
}

fn summary(steps: &[&Step], outcomes: &[Outcome]) -> String {
    let mut total = Duration::ZERO;
    let mut rows = Vec::new();
    for (step, outcome) in steps.iter().zip(outcomes) {
        let (word, took) = match outcome {
            Outcome::Passed(duration) => ("passed", *duration),
            Outcome::Failed(duration) => ("FAILED", *duration),
            Outcome::NotRun => ("not run", Duration::ZERO),
        };
        total += took;
        rows.push(format!("{:<10} {word:<8} {:>9}", step.name, seconds(took)));
    }
    rows.push(format!("{:<10} {:<8} {:>9}", "total", "", seconds(total)));
    rows.join("\n")
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    static SAMPLE: &[Step] = &[sample("first", false), sample("second", false), sample("slow", true)];

    const fn sample(name: &'static str, full_only: bool) -> Step {
        Step {
            name,
            action: Action::Cargo { arguments: "check --locked", environment: &[("RUSTFLAGS", "-D warnings")] },
            full_only,
        }
    }

    fn names(steps: &[&Step]) -> Vec<&'static str> {
        steps.iter().map(|step| step.name).collect()
    }

    #[test]
    fn the_quick_steps_come_first() {
        assert_eq!(names(&select(STEPS, Scope::Standard)), ["fmt", "tidy", "api", "clippy", "test", "doc"]);
    }

    #[test]
    fn only_the_full_scope_takes_the_full_rows() {
        assert_eq!(names(&select(SAMPLE, Scope::Standard)), ["first", "second"]);
        assert_eq!(names(&select(SAMPLE, Scope::Full)), ["first", "second", "slow"]);
    }

    #[test]
    fn the_first_failure_stops_the_run() {
        let steps = select(SAMPLE, Scope::Full);
        let mut ran = Vec::new();
        let (outcomes, failure) = run_until_failure(&steps, &mut |step| {
            ran.push(step.name);
            if step.name == "second" {
                bail!("exit status: 1");
            }
            Ok(())
        });
        assert_eq!(ran, ["first", "second"]);
        assert!(matches!(outcomes.as_slice(), [Outcome::Passed(_), Outcome::Failed(_), Outcome::NotRun]));
        let (step, error) = failure.expect("the second step fails");
        assert_eq!(step.name, "second");
        assert_eq!(error.to_string(), "exit status: 1");
    }

    #[test]
    fn a_step_can_be_repeated_from_a_shell() {
        let lines: Vec<String> = STEPS.iter().map(|step| command_line(&step.action)).collect();
        assert_eq!(
            lines,
            [
                "cargo fmt --all --check",
                "cargo xtask tidy",
                "cargo xtask api",
                "cargo clippy --workspace --all-targets --locked -- -D warnings",
                "cargo test --workspace --locked",
                "RUSTDOCFLAGS=\"-D warnings\" cargo doc --workspace --no-deps --locked",
                "cargo xtask foreign python",
                "cargo xtask foreign inspector",
                "cargo xtask foreign conformance",
                "cargo xtask foreign servers",
                "LOCUM_TEST_LIVES=\"300\" cargo test --workspace --test durability --locked worktrees",
                "cargo xtask foreign requests",
                "cargo xtask foreign local-model",
                "cargo xtask foreign witness",
                "cargo xtask foreign shells",
                "cargo xtask foreign dashboard",
                "cargo xtask foreign api-tester",
                "LOCUM_TEST_CROWD=\"200x1000\" cargo test --workspace --test serve --locked many_readers",
            ]
        );
    }

    #[test]
    fn the_summary_lists_every_step_and_the_total() {
        let outcomes = [
            Outcome::Passed(Duration::from_millis(1500)),
            Outcome::Failed(Duration::from_millis(500)),
            Outcome::NotRun,
        ];
        assert_eq!(
            summary(&select(SAMPLE, Scope::Full), &outcomes),
            "first      passed       1.5 s\n\
             second     FAILED       0.5 s\n\
             slow       not run      0.0 s\n\
             total                   2.0 s"
        );
    }
}
