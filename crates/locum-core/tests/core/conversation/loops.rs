//! Going round in circles: told at three, stopped at five, with what it has.

use super::check;

conversations! {
    the_same_failing_call_is_stopped: r#"
agent tools=read turns=25
task Look.
user Look.
> calls read {"path":"a","deep":{"x":1,"y":2}} | says Let me see
~ read
< read failed: no such file
> calls read {"deep":{"y":2,"x":1},"path":"a"}
~ read
< read failed: no such file either
> calls read {"path":"a","deep":{"x":1,"y":2}}
~ read
< read failed: still none
told You have done the same several times in a row, with the same result. Do something else, or give your answer with what you have.
> calls read {"path":"a","deep":{"x":1,"y":2}}
~ read
< read failed: none
told You have done the same several times in a row, with the same result. Do something else, or give your answer with what you have.
> calls read {"path":"a","deep":{"x":1,"y":2}}
~ read
< read failed: none at all
= failed(loop): Stopped: the same tool call was repeated 5 times | Let me see
used 5 turns, 5 tool calls, 0 denials
"#

    a_cycle_of_calls_with_the_same_results_is_stopped: r#"
agent tools=read,grep turns=25
task Look.
user Look.
> calls read {"path":"a"}
~ read
< read: one
> calls grep {"pattern":"b"}
~ grep
< grep: two
> calls read {"path":"a"}
~ read
< read: one
> calls grep {"pattern":"b"}
~ grep
< grep: two
> calls read {"path":"a"}
~ read
< read: one
> calls grep {"pattern":"b"}
~ grep
< grep: two
told You have done the same several times in a row, with the same result. Do something else, or give your answer with what you have.
> calls read {"path":"a"}
~ read
< read: one
told You have done the same several times in a row, with the same result. Do something else, or give your answer with what you have.
> calls grep {"pattern":"b"}
~ grep
< grep: two
told You have done the same several times in a row, with the same result. Do something else, or give your answer with what you have.
> calls read {"path":"a"}
~ read
< read: one
told You have done the same several times in a row, with the same result. Do something else, or give your answer with what you have.
> calls grep {"pattern":"b"}
~ grep
< grep: two
= failed(loop): Stopped: the same tool call was repeated 5 times
used 10 turns, 10 tool calls, 0 denials
"#

    a_call_whose_result_changes_may_be_repeated: r#"
agent tools=read turns=25
task Wait.
user Wait.
> calls read {"path":"a"}
~ read
< read: 1
> calls read {"path":"a"}
~ read
< read: 2
> calls read {"path":"a"}
~ read
< read: 3
> calls read {"path":"a"}
~ read
< read: 4
> calls read {"path":"a"}
~ read
< read: 5
> calls read {"path":"a"}
~ read
< read: 6
> says Six.
= completed: Six.
used 7 turns, 6 tool calls, 0 denials
"#

    a_call_that_succeeds_may_be_a_poll: r#"
agent tools=read turns=25
task Wait.
user Wait.
> calls read {"path":"a"}
~ read
< read: not yet
> calls read {"path":"a"}
~ read
< read: not yet
> calls read {"path":"a"}
~ read
< read: not yet
> calls read {"path":"a"}
~ read
< read: not yet
> calls read {"path":"a"}
~ read
< read: not yet
> calls read {"path":"a"}
~ read
< read: not yet
> says Never.
= completed: Never.
used 7 turns, 6 tool calls, 0 denials
"#

    a_round_whose_answers_change_is_none: r#"
agent tools=read,grep turns=25
task Wait.
user Wait.
> calls read {"path":"a"}
~ read
< read: one
> calls grep {"pattern":"b"}
~ grep
< grep: 1
> calls read {"path":"a"}
~ read
< read: one
> calls grep {"pattern":"b"}
~ grep
< grep: 2
> calls read {"path":"a"}
~ read
< read: one
> calls grep {"pattern":"b"}
~ grep
< grep: 3
> calls read {"path":"a"}
~ read
< read: one
> calls grep {"pattern":"b"}
~ grep
< grep: 4
> calls read {"path":"a"}
~ read
< read: one
> calls grep {"pattern":"b"}
~ grep
< grep: 5
> says Five.
= completed: Five.
used 11 turns, 10 tool calls, 0 denials
"#

    who_listens_when_told_goes_on: r#"
agent tools=read turns=25
task Look.
user Look.
> calls read {"path":"a"}
~ read
< read failed: no
> calls read {"path":"a"}
~ read
< read failed: no
> calls read {"path":"a"}
~ read
< read failed: no
told You have done the same several times in a row, with the same result. Do something else, or give your answer with what you have.
> calls read {"path":"b"}
~ read
< read failed: no
> calls read {"path":"a"}
~ read
< read failed: no
> says I cannot.
= completed: I cannot.
used 6 turns, 5 tool calls, 0 denials
"#

    a_failing_call_beside_others_is_seen: r#"
agent tools=read,grep turns=25
task Look.
user Look.
> calls read {"path":"a"}; grep {"pattern":"1"}
~ read grep
< read failed: no
< grep: 1
> calls read {"path":"a"}; grep {"pattern":"2"}
~ read grep
< read failed: no
< grep: 2
> calls read {"path":"a"}; grep {"pattern":"3"}
~ read grep
< read failed: no
< grep: 3
told You have done the same several times in a row, with the same result. Do something else, or give your answer with what you have.
> calls read {"path":"a"}; grep {"pattern":"4"}
~ read grep
< read failed: no
< grep: 4
told You have done the same several times in a row, with the same result. Do something else, or give your answer with what you have.
> calls read {"path":"a"}; grep {"pattern":"5"}
~ read grep
< read failed: no
< grep: 5
= failed(loop): Stopped: the same tool call was repeated 5 times
used 5 turns, 10 tool calls, 0 denials
"#
}
