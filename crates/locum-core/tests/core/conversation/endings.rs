//! How conversations end, in the contract's words: turns, answers that are none, failures, budgets, stops.

use super::check;

conversations! {
    tool_calls_in_the_last_turn_are_not_run: r#"
agent tools=read,write turns=2
task Go on
user Go on
> calls read {} | says So far
~ read
< read: contents
last turn
> calls write {}
= failed(max_turns): Max turns exceeded without producing a final response | So far
used 2 turns, 1 tool calls, 0 denials
"#
    one_turn_is_the_last_turn: r#"
agent tools=read turns=1
task Go
user Go
last turn
> says done
= completed: done
used 1 turns, 0 tool calls, 0 denials
"#
    one_turn_that_calls_tools_has_no_answer: r#"
agent tools=read turns=1
task Go
user Go
last turn
> calls read {}
= failed(max_turns): Max turns exceeded without producing a final response
used 1 turns, 0 tool calls, 0 denials
"#
    nothing_said_in_the_last_turn_is_no_answer: r#"
agent tools=read turns=2
task Go
user Go
> calls read {} | says Half of it
~ read
< read: contents
last turn
> says
= failed(max_turns): Max turns exceeded without producing a final response | Half of it
used 2 turns, 1 tool calls, 0 denials
"#
    an_empty_answer_is_no_answer: r#"
agent
task Go
user Go
> says \n
= failed(empty): The model ended without an answer
used 1 turns, 0 tool calls, 0 denials
"#
    a_refusal_is_no_answer: r#"
agent
task Go
user Go
> says I would rather | refuses it is harmful
= failed(refused): The model refused to answer: it is harmful | I would rather
used 1 turns, 0 tool calls, 0 denials
"#
    a_refused_reply_runs_none_of_its_calls: r#"
agent tools=bash
task Go
user Go
> calls bash {"command":"rm"} | refuses filtered
= failed(refused): The model refused to answer: filtered
used 1 turns, 0 tool calls, 0 denials
"#
    a_cut_answer_is_no_answer: r#"
agent
task Go
user Go
> cuts The beginning of
= failed(cut): The answer was cut at the model's output limit | The beginning of
used 1 turns, 0 tool calls, 0 denials
"#
    failed_calls_are_made_again_in_the_same_turn: r#"
agent tools=read turns=2
task Go
user Go
> fails overloaded: busy
> fails cut_stream: gone | Half
> calls read {}
~ read
< read: contents
last turn
> fails rate_limit: slowly
last turn
> says done
= completed: done
used 2 turns, 1 tool calls, 0 denials
"#
    a_model_that_gives_up_fails_the_task_and_keeps_what_it_said: r#"
agent tools=read
task Go
user Go
> calls read {} | says So far
~ read
< read: contents
> fails server: 500
> gives up server: 500 again | And more
= failed(model): Model API error: 500 again | And more
used 2 turns, 1 tool calls, 0 denials
"#
    a_spent_input_budget_ends_the_task: r#"
agent tools=read max_input=230
task Go
user Go
> calls read {} | says So far @90/5
~ read
< read: contents that are far too long to be sent together with everything else, because there are so many of them that one has to go on reading for a long time until the end of all this, which is here, and not one word earlier than this one, or so it seems
= failed(budget): Budget exceeded: input tokens would pass 230 | So far
used 1 turns, 1 tool calls, 0 denials
"#
    an_input_budget_that_ends_leaves_room_for_one_answer: r#"
agent tools=read max_input=250
task Go
user Go
> calls read {} | says So far @90/5
~ read
< read: contents
last answer
> says done @95/5
= completed: done
used 2 turns, 1 tool calls, 0 denials
"#
    tool_calls_in_the_last_answer_are_not_run: r#"
agent tools=read max_input=250
task Go
user Go
> calls read {} | says So far @90/5
~ read
< read: contents
last answer
> calls read {} | says More @95/5
= failed(budget): Budget exceeded: input tokens would pass 250 | More
used 2 turns, 1 tool calls, 0 denials
"#
    a_last_answer_that_is_cut_is_none: r#"
agent tools=read max_output=1000
task Go
user Go
> calls read {} | says So far @10/750
~ read
< read: contents
last answer
> cuts Mo @10/200
= failed(budget): Budget exceeded: output tokens would pass 1000 | Mo
used 2 turns, 1 tool calls, 0 denials
"#
    a_model_is_told_once_that_its_budget_nears_its_end: r#"
agent tools=read max_output=100000
task Go
user Go
> calls read {} @10/79999
~ read
< read: contents
> calls read {} @10/1
~ read
< read: contents
told Four fifths of your budget (100000 output tokens) are used up: finish soon, and spend the rest on the answer.
> calls read {} @10/1
~ read
< read: contents
> says done @10/1
= completed: done
used 4 turns, 3 tool calls, 0 denials
"#
    an_agent_without_tools_needs_no_room_for_another_answer: r#"
agent max_input=90
task Go
user Go
> says done @86/5
= completed: done
used 1 turns, 0 tool calls, 0 denials
"#
    a_spent_output_budget_ends_the_task: r#"
agent tools=read max_output=100
task Go
user Go
> calls read {} | says So far @10/100
~ read
< read: contents
= failed(budget): Budget exceeded: output tokens would pass 100 | So far
used 1 turns, 1 tool calls, 0 denials
"#
    budgets_hold_the_largest_numbers: r#"
agent tools=read max_input=18446744073709551615 max_output=18446744073709551615
task Go
user Go
> calls read {} @10/18446744073709551614
~ read
< read: contents
last answer
> says done @18446744073709551615/18446744073709551615
= completed: done
used 2 turns, 1 tool calls, 0 denials
"#
    a_cancelled_task_keeps_what_it_said: r#"
agent tools=read
task Go
user Go
> calls read {} | says So far
~ read
< read: contents
! cancelled
= cancelled | So far
used 2 turns, 1 tool calls, 0 denials
"#
    a_stop_between_tools_counts_those_that_ended: r#"
agent tools=read,grep
task Go
user Go
> calls fly {}; read {}; grep {} | says So far
< fly denied: You have no tool named `fly`. You have: read, grep.
~ read grep
< read: contents
! timed_out 30
= failed(timeout): Timed out after 30 s | So far
used 1 turns, 2 tool calls, 1 denials
"#
    silence_of_the_model_is_named: r#"
agent
task Go
user Go
! stalled 180 model
= failed(stalled): Stalled: no activity for 180 s during model
used 1 turns, 0 tool calls, 0 denials
"#
    silence_of_a_tool_is_named: r#"
agent tools=read
task Go
user Go
> calls read {}
~ read
! stalled 600 tool
= failed(stalled): Stalled: no activity for 600 s during tool
used 1 turns, 0 tool calls, 0 denials
"#
    silence_at_the_start_is_named: r#"
agent
task Go
user Go
! stalled 60 startup
= failed(stalled): Stalled: no activity for 60 s during startup
used 1 turns, 0 tool calls, 0 denials
"#
    an_unusable_tool_layer_fails_the_task: r#"
agent tools=read
task Go
user Go
> calls read {}
~ read
! tool_layer 1 the sandbox is gone
= failed(tool): Tool execution error in turn 1: the sandbox is gone
used 1 turns, 0 tool calls, 0 denials
"#
    a_fault_of_locum_is_called_one: r#"
agent
task Go
user Go
! internal a lock
= failed(internal): Internal error: a lock
used 1 turns, 0 tool calls, 0 denials
"#
    where_replies_with_tools_are_the_turns_the_last_ones_run: r#"
agent tools=read turns=2 rule=tool_replies
task Go
user Go
> calls read {}
~ read
< read: one
> calls read {} | says So far
~ read
< read: two
= failed(max_turns): Max turns exceeded without producing a final response | So far
used 2 turns, 2 tool calls, 0 denials
"#
    where_replies_with_tools_are_the_turns_an_answer_is_none: r#"
agent tools=read turns=1 rule=tool_replies
task Go
user Go
> says done
= completed: done
used 1 turns, 0 tool calls, 0 denials
"#
}

#[test]
fn a_25th_turn_is_the_last() {
    let turn = "> calls read {}\n~ read\n< read: more\n";
    let turns = turn.repeat(24);
    check(&format!(
        "agent tools=read turns=25\ntask Go\nuser Go\n{turns}last turn\n> says done\n= completed: done\n\
         used 25 turns, 24 tool calls, 0 denials"
    ));
    check(&format!(
        "agent tools=read turns=26\ntask Go\nuser Go\n{turns}last turn\n> calls read {{}}\n\
         = failed(max_turns): Max turns exceeded without producing a final response\n\
         used 25 turns, 24 tool calls, 0 denials"
    ));
}
