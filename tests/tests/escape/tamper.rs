//! Attack 16: a row is edited by no transaction, and a transaction comes after
//! it.

use crate::ground::Ground;

attacks! {
    an_edited_row_stays_reported,
    a_step_cannot_write_issue_memory,
}

fn an_edited_row_stays_reported(ground: &mut Ground) {
    ground.hostile("h", "true");
    ground.row("victim", "epic");
    ground.night();
    let memory = "repo/.premath/issues.jsonl";
    let text = ground.read(memory);
    let edited = text.replace("\"title\":\"issue victim\"", "\"title\":\"edited\"");
    assert_ne!(text, edited, "the row is there");
    ground.write(memory, &edited);
    ground.premath(&[
        "issue",
        "add",
        "later",
        "--id",
        "later",
        "--override-reason",
        "test",
    ]);
    let doctor = ground.premath(&["doctor"]);
    let printed = format!("{}{}", doctor.stdout, doctor.stderr);
    ground.harm(
        doctor.code == Some(0) && !printed.contains("victim"),
        format!("the doctor does not name the edited row: {printed}"),
    );
}

fn a_step_cannot_write_issue_memory(ground: &mut Ground) {
    ground.row("victim", "epic");
    let script = r#"row='{"id":"victim","title":"forged","status":"closed","issue_type":"epic"}'
for at in "$PREMATH_ISSUES_PATH" "$ROOT/.premath/issues.jsonl" "$ROOT"/.premath/issues.jsonl.*; do
  echo "$row" >> "$at"; echo "$row" > "$at.new" && mv "$at.new" "$at"
  ln "$at" linked && echo "$row" >> linked; rm -f linked
done
mv "$ROOT/.premath" "$ROOT/.gone"; rm -rf "$ROOT/.premath"; :"#;
    ground.hostile("h", script);
    ground.nights();
    let status = ground.status("victim");
    ground.harm(status != "open", format!("a forged row counts: {status}"));
}
