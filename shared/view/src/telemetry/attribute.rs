//! The attributes of a span: ids, classes and amounts of its row, by the semantic
//! conventions of OpenTelemetry where they have a name.

use super::otlp::{AnyValue, ArrayValue, KeyValue, Value};
use premath_kernel::json::canonical::sha256_hex;
use premath_kernel::json::plain::plain;
use premath_kernel::record::timed_call::TimedCall;
use premath_kernel::record::trajectory::{AgentRecord, StepRow};

/// The longest text, in characters: a model's name is the agent's word.
const TEXT_MAX: usize = 256;

/// Returns the first bytes of the digest of an id.
pub(super) fn id_bytes(id: &str, count: usize) -> Vec<u8> {
    let hex = sha256_hex(id.as_bytes());
    let bytes = (0..count).filter_map(|index| hex.get(index * 2..index * 2 + 2));
    let bytes = bytes.filter_map(|pair| u8::from_str_radix(pair, 16).ok());
    bytes.collect()
}

pub(super) fn attribute(key: &str, text: &str) -> KeyValue {
    of_value(key, word(text))
}

pub(super) fn whole(key: &str, count: u64) -> KeyValue {
    of_value(key, Value::Whole(i64::try_from(count).unwrap_or(i64::MAX)))
}

fn of_value(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
    }
}

fn word(text: &str) -> Value {
    Value::Text(plain(text).chars().take(TEXT_MAX).collect())
}

/// Returns billionths of a dollar as dollars.
pub(super) fn dollars(nano: u64) -> f64 {
    nano as f64 / 1e9
}

/// Returns the class of a row that did not succeed.
pub(super) fn error_of(row: &StepRow) -> String {
    let class = row.failure_classes.first().unwrap_or(&row.result_class);
    plain(class).chars().take(TEXT_MAX).collect()
}

/// Returns the attributes of a row.
pub(super) fn of_row(row: &StepRow) -> Vec<KeyValue> {
    let mut all = vec![
        attribute("premath.step.id", &row.step_id),
        attribute("premath.action", &row.action),
        attribute("premath.result_class", &row.result_class),
    ];
    let landing = row.landing.as_ref();
    let verification = row.verification.as_ref();
    let texts = [
        ("premath.batch.id", row.batch_id.as_deref()),
        ("premath.issue.id", row.issue_id.as_deref()),
        ("premath.worker.id", row.worker_id.as_deref()),
        (
            "premath.verification.class",
            verification.map(|verification| verification.class.as_str()),
        ),
        (
            "premath.landing.target",
            landing.map(|landing| landing.target.as_str()),
        ),
        (
            "premath.landing.commit",
            landing.map(|landing| landing.commit.as_str()),
        ),
    ];
    let texts = texts.into_iter();
    all.extend(texts.filter_map(|(key, text)| Some(attribute(key, text?))));
    let retry = row.retry.as_ref();
    let counts = [
        ("premath.generation", row.generation),
        ("premath.waited_ms", row.waited_ms),
        (
            "premath.retry.attempt",
            retry.map(|retry| u64::from(retry.attempt)),
        ),
    ];
    let counts = counts.into_iter();
    all.extend(counts.filter_map(|(key, count)| Some(whole(key, count?))));
    if !row.succeeded() {
        all.push(attribute("error.type", &error_of(row)));
    }
    if !row.failure_classes.is_empty() {
        let values = row.failure_classes.iter().map(|class| AnyValue {
            value: Some(word(class)),
        });
        let values = values.collect();
        all.push(of_value(
            "premath.failure_classes",
            Value::Array(ArrayValue { values }),
        ));
    }
    if row.recovered {
        all.push(of_value("premath.recovered", Value::Flag(true)));
    }
    if let Some(agent) = &row.agent {
        of_agent(&mut all, agent);
    }
    all
}

/// Returns the attributes of a call. What it is called with is not sent.
pub(super) fn of_call(call: &TimedCall) -> Vec<KeyValue> {
    let mut all = vec![
        attribute("gen_ai.operation.name", "execute_tool"),
        attribute("gen_ai.tool.name", &call.tool),
        attribute("premath.tool.class", call.class.as_str()),
        whole("premath.call.number", call.number),
        whole("premath.round", u64::from(call.round)),
    ];
    let id = call.id.as_deref();
    all.extend(id.map(|id| attribute("gen_ai.tool.call.id", id)));
    if call.is_of_subagent {
        all.push(of_value("premath.subagent", Value::Flag(true)));
    }
    match (&call.denied_by, &call.ended) {
        (Some(rule), _) => {
            all.push(attribute("premath.denied_by", rule));
            all.push(attribute("error.type", "denied"));
        }
        (None, None) => {
            let flag = Value::Flag(true);
            all.push(of_value("premath.call.end_not_reported", flag));
        }
        // What failed in it is not known: the word of the conventions for that.
        (None, Some(_)) if call.has_failed => all.push(attribute("error.type", "_OTHER")),
        (None, Some(_)) => {}
    }
    all
}

fn of_agent(all: &mut Vec<KeyValue>, agent: &AgentRecord) {
    all.push(attribute("gen_ai.operation.name", "invoke_agent"));
    all.push(attribute("gen_ai.agent.name", &agent.adapter));
    // The conventions' names. OpenCode works with any provider.
    let provider = match agent.adapter.as_str() {
        "claude" => Some("anthropic"),
        "codex" => Some("openai"),
        "gemini" => Some("gcp.gemini"),
        _ => None,
    };
    all.extend(provider.map(|name| attribute("gen_ai.provider.name", name)));
    let model = agent.model.as_deref();
    all.extend(model.map(|name| attribute("gen_ai.response.model", name)));
    all.push(whole("premath.agent.calls", agent.calls));
    if let Some(tokens) = agent.tokens {
        all.push(whole("gen_ai.usage.input_tokens", tokens.input));
        all.push(whole("gen_ai.usage.cache_read.input_tokens", tokens.cached));
        all.push(whole("gen_ai.usage.output_tokens", tokens.output));
    }
    if let Some(nano) = agent.cost_nano_usd {
        all.push(of_value(
            "premath.agent.cost_usd",
            Value::Decimal(dollars(nano)),
        ));
    }
    let repairs = agent.repair_rounds;
    all.extend(repairs.map(|rounds| whole("premath.agent.repair_rounds", rounds)));
    let denied = agent.denials.values().copied().fold(0, u64::saturating_add);
    all.push(whole("premath.agent.denied_calls", denied));
}
