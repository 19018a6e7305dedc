//! Models that cannot be had, and those that answer in their place.

use super::check;

conversations! {
    the_next_model_answers_in_the_same_turn: r#"
agent fallback=b,c turns=1
task Go
user Go
last turn
> gives up auth: the key is wrong
scripted:s -> acme:b: the key is wrong
last turn
> says done
= completed: done
used 1 turns, 0 tool calls, 0 denials
"#
    every_model_of_the_list_is_asked_once: r#"
agent fallback=b,c
task Go
user Go
> gives up not_found: no such model
scripted:s -> acme:b: no such model
> fails overloaded: busy
> gives up overloaded: still busy
acme:b -> acme:c: still busy
> gives up rate_limit: the month's limit is used up
= failed(model): Model API error: the month's limit is used up
used 1 turns, 0 tool calls, 0 denials
"#
    the_conversation_goes_on_with_the_next_model: r#"
agent fallback=b tools=read
task Go
user Go
> calls read {}
~ read
< read: contents
> gives up rate_limit: slow down | Half
scripted:s -> acme:b: slow down
> says done
= completed: done
used 2 turns, 1 tool calls, 0 denials
"#
    without_a_list_no_other_model_is_asked: r#"
agent
task Go
user Go
> gives up auth: the key is wrong
= failed(model): Model API error: the key is wrong
used 1 turns, 0 tool calls, 0 denials
"#
    another_model_does_not_help_against_a_wrong_request: r#"
agent fallback=b
task Go
user Go
> gives up bad_request: wrong
= failed(model): Model API error: wrong
used 1 turns, 0 tool calls, 0 denials
"#
    nor_against_a_conversation_that_is_too_long: r#"
agent fallback=b
task Go
user Go
> gives up context_overflow: too long
= failed(model): Model API error: too long
used 1 turns, 0 tool calls, 0 denials
"#
    nor_against_a_network_that_is_gone: r#"
agent fallback=b
task Go
user Go
> gives up network: unreachable
= failed(model): Model API error: unreachable
used 1 turns, 0 tool calls, 0 denials
"#
}
