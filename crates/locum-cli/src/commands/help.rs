//! `locum help`: what `--help` says, for those who ask for it as a verb.

use crate::args::{Cli, HelpArgs};
use crate::output::{Exit, Output};

pub(super) fn help(args: &HelpArgs, output: Output) -> Exit {
    let mut command = Cli::whole_command();
    command.build();
    let mut found = &mut command;
    for verb in &args.verbs {
        found = match found.find_subcommand_mut(verb) {
            Some(next) => next,
            None => {
                let said = args.verbs.join(" ");
                output.complain(&format!("there is no verb `{said}`"), Some("`locum help` lists the verbs"));
                return Exit::Failed;
            }
        };
    }
    output.answer(&found.render_help().ansi().to_string());
    Exit::Done
}
