//! What is to happen to the calls of a turn: checked, guarded, asked, made, or answered at once.

use serde_json::{Map, Value};

use askwell_shared::agent::{ASK_QUESTION, Approval, QUESTION};
use askwell_shared::ask::{Kind, ask_question, input, question, texts};
use askwell_shared::id::new_ask_id;
use askwell_shared::run::{Plan, SavedCall};

use crate::agents::Loaded;
use crate::driver::TurnCall;
use crate::guards::check_all;

/// The most bytes of an input that a person is asked to approve, as of any ask (ours).
const MOST_SHOWN: usize = 32 * 1024;

/// Plans one call.
pub async fn plan(agent: &Loaded, call: TurnCall) -> SavedCall {
    let (input, plan) = match call.input {
        Ok(input) => {
            let plan = decide(agent, &call.tool, &input).await;
            (input, plan)
        }
        Err(told) => (Value::Object(Map::new()), Plan::Tell(told)),
    };
    SavedCall {
        call: call.call,
        tool: call.tool,
        input,
        plan,
    }
}

async fn decide(agent: &Loaded, tool: &str, input: &Value) -> Plan {
    let shown = match tool {
        QUESTION if agent.agent.questions => question::read(input),
        ASK_QUESTION if agent.agent.ask_question => ask_question::read(input),
        _ => return own_tool(agent, tool, input).await,
    };
    let shown = match shown {
        Ok(shown) => shown,
        Err(told) => return Plan::Tell(told),
    };
    if tool == QUESTION {
        guarded(agent, tool, Kind::Question, shown, 1, None).await
    } else {
        let questions = ask_question::questions(&shown);
        guarded(agent, tool, Kind::AskQuestion, shown, questions, None).await
    }
}

async fn own_tool(agent: &Loaded, name: &str, input: &Value) -> Plan {
    let Some(tool) = agent.tools.get(name) else {
        return Plan::Tell(texts::tool_gone(name));
    };
    let spec = tool.spec();
    if let Err(told) = input::check_for_model(&spec.parameters, input) {
        return Plan::Tell(told);
    }
    if spec.approval != Approval::Always && !tool.needs_approval(input) {
        return Plan::Call;
    }
    let bytes = input.to_string().len();
    if bytes > MOST_SHOWN {
        return Plan::Tell(format!(
            "A person has to approve this call, and its input is {bytes} bytes of JSON; at most \
             {MOST_SHOWN} can be shown. Nothing was done."
        ));
    }
    let editable = spec.editable.then(|| spec.parameters.clone());
    guarded(agent, name, Kind::Approval, input.clone(), 1, editable).await
}

/// An ask, unless a guard lets nobody see it.
async fn guarded(
    agent: &Loaded,
    tool: &str,
    kind: Kind,
    input: Value,
    questions: u32,
    editable: Option<Value>,
) -> Plan {
    match check_all(&agent.guards, tool, &input).await {
        Err(reason) => Plan::Tell(texts::guard_refused(&reason)),
        Ok(()) => Plan::Ask {
            kind,
            id: new_ask_id(),
            input,
            questions,
            editable,
        },
    }
}
