//! Conversations that come to an answer: tools on the way, and what the model is told first.

use super::check;

conversations! {
    an_answer_completes_the_task: r#"
agent
task Say it
user Say it
> says done
= completed: done
used 1 turns, 0 tool calls, 0 denials
"#
    tools_are_called_and_their_output_is_read: r#"
agent tools=read,grep turns=3
task Find it
user Find it
> calls read {"path":"a"} | says I look
~ read
< read: contents
> calls grep {"pattern":"x"}
~ grep
< grep: a:1
last turn
> says It is in a:1
= completed: It is in a:1
used 3 turns, 2 tool calls, 0 denials
"#
    a_failed_tool_is_output: r#"
agent tools=read
task Read it
user Read it
> calls read {"path":"missing"}
~ read
< read failed: no such file
> says It does not exist
= completed: It does not exist
used 2 turns, 1 tool calls, 0 denials
"#
    a_tool_that_was_not_granted_is_denied: r#"
agent tools=read,grep
task Write it
user Write it
> calls write {"path":"a"}
< write denied: You have no tool named `write`. You have: read, grep.
> says I cannot
= completed: I cannot
used 2 turns, 1 tool calls, 1 denials
"#
    an_agent_without_tools_has_none: r#"
agent
task Read it
user Read it
> calls read {}; subagent {}
< read denied: You have no tool named `read`. You have no tools.
< subagent denied: You have no tool named `subagent`. You have no tools.
> says I cannot
= completed: I cannot
used 2 turns, 2 tool calls, 2 denials
"#
    input_that_is_no_object_is_explained: r#"
agent tools=read
task Read it
user Read it
> calls read {"path":; read [1]; read "{}"; read {}
< read failed: The input is not valid JSON: EOF while parsing a value at line 1 column 8. Send one JSON object.
< read failed: The input must be a JSON object.
< read failed: The input must be a JSON object.
~ read
< read: contents
> says done
= completed: done
used 2 turns, 4 tool calls, 0 denials
"#
    repeatable_calls_run_together_and_others_alone_in_order: r#"
agent tools=read,grep,write,bash
task Mix
user Mix
> calls read {"n":1}; grep {"n":2}; write {"n":3}; bash {"n":4}; read {"n":5}; fly {}; grep {"n":6}; read {"n":7}
~ read grep
< read: one
< grep: two
~ write
< write: three
~ bash
< bash failed: four
~ read
< read: five
< fly denied: You have no tool named `fly`. You have: read, grep, write, bash.
~ grep read
< grep: six
< read: seven
> says done
= completed: done
used 2 turns, 8 tool calls, 1 denials
"#
    calls_with_the_same_id_are_answered_one_by_one: r#"
agent tools=read,grep,write
task Twice
user Twice
> calls read#x {"n":1}; grep#x {"n":2}; grep#y {"n":3}; write#x {"n":4}; write#x {"n":5}
~ read
< read: one
~ grep grep
< grep: two
< grep: three
~ write
< write: four
~ write
< write: five
> says done
= completed: done
used 2 turns, 5 tool calls, 0 denials
"#
    a_prompt_may_hold_the_task: r#"
agent
prompt Do {{task}}, I say: {{task}}!
task the laundry
system Do the laundry, I say: the laundry!
user Begin.
> says done
= completed: done
used 1 turns, 0 tool calls, 0 denials
"#
    results_are_handed_on_as_blocks: r#"
agent
after t_01 reader: one\ntwo
after t_02 worker: three
task Compare {previous}
user Compare {previous}\n\n[t_01 reader]\none\ntwo\n\n[t_02 worker]\nthree
> says same
= completed: same
used 1 turns, 0 tool calls, 0 denials
"#
    the_step_before_is_put_into_the_task: r#"
agent chained
prompt Do {{task}}
after t_01 reader: the {{task}}
task Improve {previous}; again: {previous}
system Do Improve the {{task}}; again: the {{task}}
user Begin.
> says better
= completed: better
used 1 turns, 0 tool calls, 0 denials
"#
    a_step_of_a_chain_also_gets_what_it_depends_on: r#"
agent chained
after t_01 reader: sources
after t_02 worker: a draft
task Improve {previous}
user Improve a draft\n\n[t_01 reader]\nsources
> says better
= completed: better
used 1 turns, 0 tool calls, 0 denials
"#
}

#[test]
fn a_reply_with_65_calls_runs_64() {
    let calls: Vec<String> = (1..=65).map(|n| format!("read {{\"n\":{n}}}")).collect();
    let ran = vec!["read"; 64].join(" ");
    let outputs: Vec<String> = (1..=64).map(|n| format!("< read: {n}")).collect();
    check(&format!(
        "agent tools=read\ntask Go\nuser Go\n> calls {}\n~ {ran}\n{}\n\
         < read failed: Not run: a reply may make at most 64 tool calls.\n\
         > says done\n= completed: done\nused 2 turns, 65 tool calls, 0 denials",
        calls.join("; "),
        outputs.join("\n"),
    ));
}
