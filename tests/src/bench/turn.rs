//! A large turn, normalised, digested and judged, beside the plain digest of
//! its bytes; and what that needs of memory, beside the document.

use crate::Sizes;
use crate::figure::{self, Wrong, median, timed};
use crate::memory::peak_of;
use crate::programs::Programs;
use premath_kernel::canonical::sha256_hex;
use premath_kernel::turn::{
    ActionMode, CallSpecRow, Evidence, ExecutionPattern, FurtherBinding, JoinCheckInput,
    ParsedInput, ProtocolState, QueueRow, RenderRow, RequestRow, ResultRow, StateViewRow, UseRow,
    join_classes, mutation_classes, normalize,
};
use serde_json::json;
use std::fs;
use std::path::Path;

/// How many bytes a payload has.
const PAYLOAD: usize = 1_024;

pub(crate) fn measure(sizes: Sizes, programs: &Programs, folder: &Path) -> Result<(), Wrong> {
    fs::create_dir_all(folder)?;
    let few = rates(sizes.calls, sizes.runs)?;
    figure::show(
        &format!(
            "judge a turn of {} calls of 1 KiB, rate of sha256",
            sizes.calls
        ),
        &figure::time(few.judged),
        &figure::time(few.plain),
        few.ratio,
        ">= 0.40",
    );
    figure::note(
        "  the same with reading its document",
        &figure::time(few.read),
    );
    let many = rates(sizes.calls * 10, 1)?;
    figure::show(
        &format!("the same of {} calls, time a call", sizes.calls * 10),
        &figure::time(many.judged / (sizes.calls * 10) as f64),
        &figure::time(few.judged / sizes.calls as f64),
        many.judged / few.judged / 10.0,
        "about 1 (linear)",
    );

    let path = folder.join("turn.json");
    let document = serde_json::to_vec(&turn(sizes.calls * 10))?;
    fs::write(&path, &document)?;
    let mut premath = programs.command("premath");
    premath.args(["harness-join-check", "--input"]).arg(&path);
    let peak = peak_of(premath.arg("--json"))?;
    figure::show(
        &format!(
            "peak of `premath harness-join-check`, {} calls",
            sizes.calls * 10
        ),
        &figure::size(peak),
        &figure::size(document.len() as u64),
        peak as f64 / document.len() as f64,
        "< 4",
    );
    Ok(())
}

/// Times in seconds; the ratio is that of sha256 to judging.
struct Rates {
    judged: f64,
    plain: f64,
    read: f64,
    ratio: f64,
}

fn rates(calls: usize, runs: usize) -> Result<Rates, Wrong> {
    let input = turn(calls);
    let document = serde_json::to_vec(&input)?;
    let (mut judged, mut plain, mut read, mut ratios) = (vec![], vec![], vec![], vec![]);
    for number in 0..=runs {
        let (_, hashed) = timed(|| Ok(std::hint::black_box(sha256_hex(&document))))?;
        let ((), judging) = timed(|| judge(&input))?;
        let (parsed, reading) = timed(|| Ok(ParsedInput::from_slice(&document)?.input))?;
        if parsed != input {
            return Err(Wrong::because(
                "a turn does not read back from its document",
            ));
        }
        if number > 0 {
            judged.push(judging.as_secs_f64());
            plain.push(hashed.as_secs_f64());
            read.push((judging + reading).as_secs_f64());
            ratios.push(hashed.as_secs_f64() / judging.as_secs_f64());
        }
    }
    Ok(Rates {
        judged: median(judged),
        plain: median(plain),
        read: median(read),
        ratio: median(ratios),
    })
}

fn judge(input: &JoinCheckInput) -> Result<(), Wrong> {
    let normalized = normalize(&input.evidence)?;
    let mut classes = join_classes(&normalized, &input.constraints);
    classes.extend(mutation_classes(&normalized, &input.constraints));
    match classes.first() {
        None => Ok(()),
        Some(class) => Err(Wrong::because(format!("the turn is refused: {class}"))),
    }
}

/// A closed turn of so many calls, each shown and consumed.
fn turn(calls: usize) -> JoinCheckInput {
    let spec = CallSpecRow {
        call_id: "turn".into(),
        model_ref: "model".into(),
        action_mode: ActionMode::Code,
        execution_pattern: ExecutionPattern::Single,
        normalizer_id: "nf.v1".into(),
        mutation_policy_digest: "mutation".into(),
        governance_policy_digest: "governance".into(),
        tool_render_protocol_digest: "render".into(),
        reminder_queue_policy_digest: "queue".into(),
        state_view_policy_digest: "view".into(),
        decomposition_policy_digest: "decomposition".into(),
        text_adapter_profile: None,
        further: FurtherBinding::default(),
    };
    let mut evidence = Evidence::new(spec, ProtocolState::ended("end_turn"));
    for number in 0..calls {
        let id = format!("call-{number:06}");
        let line = format!("{number} the quick brown fox jumps over the lazy dog\n");
        let text: String = line.chars().cycle().take(PAYLOAD).collect();
        let digest = sha256_hex(id.as_bytes());
        evidence.tool_requests.push(RequestRow::new(&id, "shell"));
        evidence.tool_results.push(ResultRow {
            tool_call_id: id.clone(),
            payload: Some(json!(text)),
            ..ResultRow::default()
        });
        evidence
            .tool_use
            .push(UseRow::consumed(&id, format!("artifact://{number}")));
        evidence.tool_render.push(RenderRow {
            tool_call_id: id,
            operator_payload_digest: digest.clone(),
            reminder_render_digest: digest,
            injection_point: "tool_response".into(),
            policy_digest: "render".into(),
        });
    }
    evidence.reminder_queue.push(QueueRow {
        queue_id: "q".into(),
        reduced_digest: "d".into(),
        policy_digest: "queue".into(),
    });
    evidence.state_views.push(StateViewRow {
        view_id: "v".into(),
        view_digest: "d".into(),
        policy_digest: "view".into(),
        ..StateViewRow::default()
    });
    evidence.session_refs.insert("session://s".into());
    evidence
        .trajectory_refs
        .insert("trajectory://step/s".into());
    JoinCheckInput::new(evidence)
}
