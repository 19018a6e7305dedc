//! What a rule wants to be asked, with an asker of the application's own.

use std::sync::{Arc, Mutex};

use locum::asking::{Answer, Asker, Question};
use locum::models::BoxFuture;
use locum::models::scripted::{Say, Scripted};
use locum::permission::Rule;
use locum::task::TaskEvent;
use serde_json::{Value, json};

use crate::stage::{agent, builder, check, run};

/// Answers from a list, and remembers what it was asked.
struct Listed {
    answers: Mutex<Vec<Answer>>,
    asked: Mutex<Vec<Question>>,
}

impl Asker for Listed {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        self.asked.lock().unwrap().push(question.clone());
        let answer = self.answers.lock().unwrap().remove(0);
        Box::pin(async move { answer })
    }
}

/// Never answers.
struct Silent;

impl Asker for Silent {
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(std::future::pending())
    }
}

fn think(thought: &str) -> Say {
    Say::calls([("think", json!({ "thought": thought }))])
}

fn rule() -> Vec<Rule> {
    vec![Rule::parse("ask think").unwrap()]
}

#[tokio::test(start_paused = true)]
async fn an_answer_decides_and_is_written_down() {
    let answers = vec![Answer::Yes, Answer::No, Answer::Nobody];
    let asker = Arc::new(Listed { answers: Mutex::new(answers), asked: Mutex::default() });
    let says = [think("a\u{1b}[2J"), think("b"), think("c"), Say::text("Done.")];
    let desk = builder(Scripted::new().agent("eve", says))
        .rules(rule())
        .asker(Arc::clone(&asker) as Arc<_>)
        .agent(agent("eve", &["think"]))
        .build()
        .unwrap();
    let answer = run(&desk, "eve", "Go.").await;
    check(&answer, &json!({"status": "completed", "usage": {"tool_calls": 3, "denials": 2}}));
    let expected = [
        "think was denied: the rule `ask think` wants a person to agree, and the person did not",
        "think was denied: the rule `ask think` wants a person to agree, and nobody can be asked here",
    ];
    let warnings: Vec<Value> = serde_json::from_value(answer["warnings"].clone()).unwrap();
    assert_eq!(warnings, expected);
    let shown = |question: &Question| format!("{} {} {}", question.agent, question.tool, question.about);
    let shown: Vec<String> = asker.asked.lock().unwrap().iter().map(shown).collect();
    assert_eq!(
        shown,
        ["eve think {\"thought\":\"a\\u001b[2J\"}", "eve think {\"thought\":\"b\"}", "eve think {\"thought\":\"c\"}"]
    );
    let log = desk.log_of(answer["task_id"].as_str().unwrap()).await.unwrap();
    let consents: Vec<Option<String>> = log
        .into_iter()
        .filter_map(|record| match record.event {
            TaskEvent::ToolStarted { consent, .. } => Some(consent),
            _ => None,
        })
        .collect();
    assert_eq!(consents, [Some("ask think".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn while_somebody_thinks_a_task_does_not_stall_but_its_time_counts() {
    let desk = builder(Scripted::new().agent("eve", [think("a"), Say::text("Done.")]))
        .rules(rule())
        .asker(Arc::new(Silent))
        .agent(agent("eve", &["think"]))
        .build()
        .unwrap();
    let run = json!({"action": "run", "agent": "eve", "task": "Go.", "timeout": 7200});
    let answer = crate::stage::ask(&desk, run).await;
    check(&answer, &json!({"status": "failed", "reason": "timeout"}));
}
