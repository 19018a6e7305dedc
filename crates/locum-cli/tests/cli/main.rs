//! The doors of the binary, from outside: what they answer, what they refuse and how they end. Every test has a home
//! and a project of its own, models are scripts, and nothing reaches a network.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod asking;
mod budgets;
mod conversation;
mod gc;
mod home;
mod raw;
#[path = "../serve/served.rs"]
#[expect(dead_code, reason = "the server's own tests ask more of it")]
mod served;
mod settle;
mod shell;
mod terminal;
#[path = "../serve/visit.rs"]
#[expect(dead_code, reason = "the server's own tests ask more of it")]
mod visit;

mod agent_files;
mod agent_values;
mod answers;
mod ask;
mod background;
mod bad_input;
mod borrowed_over_http;
mod borrowed_tools;
mod command_tools;
mod commands;
mod completions;
mod defaults;
mod doctor;
mod escapes;
mod face_files;
mod faces;
mod failures;
mod git_in_sandbox;
mod install;
mod limits;
mod manual;
mod mcp;
mod mcp_calls;
mod mcp_end;
mod mcp_eras;
mod mcp_lines;
mod models;
mod network;
mod output;
mod pages;
mod parity;
mod project_agents;
mod protected_names;
mod readme;
mod recording;
mod refusals;
mod surroundings;
mod torture;
mod traces;
mod trust_prompt;
mod verbs;
mod watch;
mod wrong_lines;
