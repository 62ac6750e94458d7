//! The page of `premath serve` in a browser.

use crate::serve::{HOSTILE, Served, titled};
use premath_tests::browser::Browser;
use premath_tests::{issue, skipped};
use serde_json::json;

/// Starts a browser; where there is none, the test is skipped with the reason.
fn browser(served: &Served) -> Option<Browser> {
    let Some(program) = Browser::program() else {
        skipped("the page in a browser", "chromium is not installed");
        return None;
    };
    let folder = served.scratch.folder().join("browser");
    std::fs::create_dir_all(&folder).unwrap();
    Some(Browser::start(&program, &folder))
}

const LIVE: &str = "document.getElementById('link').dataset.state === 'live'";

#[test]
fn lanes_move_without_a_reload_and_a_blocked_issue_leads_to_its_evidence() {
    let issues = [titled("bad", HOSTILE), issue("c"), issue("d")];
    let mut served = Served::start(1, &issues, &[]);
    let Some(mut browser) = browser(&served) else {
        served.finish();
        return;
    };
    served.started(&["c"]);
    browser.open(&served.url);
    assert_eq!(browser.evaluate("location.search"), "");
    browser.wait_for(LIVE);
    browser.evaluate("window.isSame = true");
    let lanes = "document.querySelector('[data-live=lanes]').innerText";
    browser.wait_for(&format!("/\\bc\\b/.test({lanes})"));
    served.release("c");
    browser.wait_for(&format!("/\\bd\\b/.test({lanes})"));
    assert_eq!(
        browser.evaluate("window.isSame"),
        true,
        "the page was loaded again"
    );
    browser
        .wait_for("document.querySelector('.counts').innerText.includes('1 of 3 issues closed')");
    // The hostile title is text.
    assert_ne!(browser.evaluate("document.title"), "owned");
    assert_eq!(
        browser.evaluate("document.querySelectorAll('main img, main script').length"),
        0
    );
    let outcomes = "document.querySelector('[data-live=outcomes]')";
    assert_eq!(
        browser.evaluate(&format!("{outcomes}.innerText.includes('work_failed')")),
        true
    );
    browser.evaluate(&format!(
        "{outcomes}.querySelector('a[href=\"/issue?id=bad\"]').click()"
    ));
    browser.wait_for("location.pathname === '/issue' && document.readyState === 'complete'");
    browser.evaluate("document.querySelector('a[href*=\"turn.json\"]').click()");
    browser.wait_for("location.pathname === '/evidence' && document.readyState === 'complete'");
    assert!(browser.text().contains("Verdict of the gate"));
    assert!(browser.errors().is_empty(), "{:?}", browser.errors());
    served.finish();
}

#[test]
fn an_attempt_is_cancelled_with_the_keyboard_where_control_is_on() {
    let mut served = Served::start(1, &[issue("a")], &["--control"]);
    let Some(mut browser) = browser(&served) else {
        served.finish();
        return;
    };
    served.started(&["a"]);
    browser.open(&served.url);
    browser.wait_for("document.getElementById('cancel-a') !== null");
    browser.evaluate("document.getElementById('cancel-a').focus()");
    browser.press("Enter", 13, "\r");
    browser
        .wait_for("location.pathname === '/control/cancel' && document.readyState === 'complete'");
    assert!(browser.text().contains("Cancel the attempt?"));
    browser.evaluate("document.querySelector('button.do').focus()");
    browser.press("Enter", 13, "\r");
    browser.wait_for("document.body.innerText.includes('it is deferred')");
    assert_eq!(served.scratch.issue("a")["status"], "deferred");
    assert!(browser.errors().is_empty(), "{:?}", browser.errors());
    served.finish();
}

#[test]
fn the_page_fits_a_phone_and_begins_with_a_way_to_its_content() {
    let long =
        "a title that goes on for quite a while, as titles do, andhasawordthatisverylongindeed";
    let mut served = Served::start(2, &[titled("bad", long), titled("a", long)], &["--control"]);
    let Some(mut browser) = browser(&served) else {
        served.finish();
        return;
    };
    served.started(&["a"]);
    browser.resize(375, 700);
    browser.open(&served.url);
    for path in [
        "/",
        "/graph",
        "/log",
        "/report",
        "/issue?id=bad",
        "/control/cancel?issue=a",
    ] {
        browser.open(&format!("{}{path}", served.origin()));
        let width = browser.evaluate("document.documentElement.scrollWidth");
        assert_eq!(width, 375, "{path} is wider than the screen");
        assert_eq!(
            browser.evaluate("document.querySelectorAll('h1').length"),
            1,
            "{path}"
        );
        browser.press("Tab", 9, "");
        assert_eq!(
            browser.evaluate("document.activeElement.className"),
            "skip",
            "{path}"
        );
        let shown = "document.activeElement.getBoundingClientRect().top >= 0";
        assert_eq!(browser.evaluate(shown), true, "{path}");
    }
    assert!(browser.errors().is_empty(), "{:?}", browser.errors());
    served.finish();
}

/// Lists the texts of a page whose contrast is less than WCAG AA asks for, the texts that
/// were looked at, how bright the page is, and what moves.
const LOOK: &str = r#"(() => {
  const parts = colour => colour.match(/[\d.]+/g).map(Number);
  const channel = value => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const luminance = colour => {
    const [red, green, blue] = parts(colour).map(channel);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const background = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      const alpha = parts(colour)[3];
      if (alpha === undefined || alpha === 1) return colour;
      if (alpha !== 0) throw new Error('half transparent: ' + at.outerHTML.slice(0, 80));
    }
    return matchMedia('(prefers-color-scheme: dark)').matches ? 'rgb(18, 18, 18)' : 'rgb(255, 255, 255)';
  };
  const faint = [];
  let seen = 0;
  for (const element of document.querySelectorAll('body *')) {
    const has = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!has || !element.checkVisibility() || element.closest('svg, option, script, style')) continue;
    const style = getComputedStyle(element);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
    const lights = [luminance(style.color), luminance(background(element))].sort((a, b) => b - a);
    const ratio = (lights[0] + 0.05) / (lights[1] + 0.05);
    seen += 1;
    if (ratio < least) faint.push(element.outerHTML.slice(0, 90) + ' ' + ratio.toFixed(2));
  }
  const moves = [...document.querySelectorAll('*')].filter(element => {
    const style = getComputedStyle(element);
    return style.animationName !== 'none' || parseFloat(style.transitionDuration) > 0
      || style.scrollBehavior === 'smooth';
  });
  return {faint, seen, light: luminance(background(document.body)), moves: moves.length};
})()"#;

#[test]
fn the_pages_can_be_read_in_light_and_dark_and_nothing_moves() {
    let mut served = Served::start(1, &[titled("bad", HOSTILE), issue("c")], &["--control"]);
    let Some(mut browser) = browser(&served) else {
        served.finish();
        return;
    };
    served.started(&["c"]);
    browser.open(&served.url);
    for (scheme, is_light) in [("light", true), ("dark", false)] {
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        let media = json!({"features": [feature]});
        browser.call("Emulation.setEmulatedMedia", media);
        for path in [
            "/",
            "/graph",
            "/log",
            "/issue?id=bad",
            "/report",
            "/control/cancel?issue=c",
        ] {
            browser.open(&format!("{}{path}", served.origin()));
            let look = browser.evaluate(LOOK);
            assert_eq!(look["faint"], json!([]), "{path} in {scheme}");
            assert!(
                look["seen"].as_u64() > Some(8),
                "{path} in {scheme}: {look}"
            );
            let light = look["light"].as_f64().unwrap();
            assert_eq!(light > 0.5, is_light, "{path} in {scheme}: {light}");
            assert_eq!(look["moves"], 0, "{path} in {scheme}");
        }
    }
    served.finish();
}

/// Lists what Tab leads to, as marks that are put on each.
const CONTROLS: &str = r#"(() => {
  const all = 'a[href], button, input:not([type=hidden]), textarea, summary, [tabindex="0"]';
  const seen = [...document.querySelectorAll(all)].filter(one => one.checkVisibility());
  // Of a group of radio buttons, the one that is checked.
  const reached = seen.filter(one => one.type !== 'radio' || one.checked);
  reached.forEach((one, place) => { one.dataset.place = place; });
  return reached.length;
})()"#;

/// Says which control has the focus, and whether that is seen.
const FOCUSED: &str = r#"(() => {
  const one = document.activeElement;
  const style = getComputedStyle(one);
  const is_seen = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
  return {place: Number(one.dataset.place ?? -1), is_seen, html: one.outerHTML.slice(0, 90)};
})()"#;

/// Lists headings that are a step too deep, and fields without a name.
const STRUCTURE: &str = r#"(() => {
  const faults = [];
  let last = 0;
  for (const heading of document.querySelectorAll('h1, h2, h3, h4, h5, h6')) {
    const depth = Number(heading.tagName[1]);
    if (depth > last + 1) faults.push(heading.outerHTML);
    last = depth;
  }
  for (const field of document.querySelectorAll('input:not([type=hidden]), textarea, progress'))
    if (!field.labels?.length && !field.ariaLabel) faults.push(field.outerHTML);
  for (const table of document.querySelectorAll('table'))
    if (!table.caption) faults.push(table.outerHTML.slice(0, 90));
  return faults;
})()"#;

/// Issues that wait for each other, with a title that is wide in every font.
fn joined() -> [serde_json::Value; 4] {
    let needing = |id: &str, title: &str, needs: &[&str]| {
        let mut row = titled(id, title);
        let edge = |on: &&str| json!({"issue_id": id, "depends_on_id": on, "type": "blocks"});
        row["dependencies"] = needs.iter().map(edge).collect();
        row
    };
    let wide = "W".repeat(200);
    [
        issue("a"),
        needing("b", &wide, &["a"]),
        needing(
            "c",
            "各種の設定ファイルを読み込む構文解析器を書き直して試験する",
            &["b"],
        ),
        needing("d", HOSTILE, &["a", "c"]),
    ]
}

#[test]
fn every_control_is_reached_with_tab_and_seen_where_it_has_the_focus() {
    let mut served = Served::start(1, &joined(), &["--control"]);
    let Some(mut browser) = browser(&served) else {
        served.finish();
        return;
    };
    served.started(&["a"]);
    browser.open(&served.url);
    for path in [
        "/",
        "/graph",
        "/log",
        "/report",
        "/issue?id=b",
        "/control/cancel?issue=a",
        "/control/retry?issue=b",
    ] {
        browser.open(&format!("{}{path}", served.origin()));
        if path == "/" {
            // What changes while the keys are pressed would lose its marks.
            browser.wait_for(LIVE);
            browser.evaluate("document.querySelector('#link button').click()");
            browser.evaluate("document.activeElement.blur()");
            browser.evaluate("getSelection().removeAllRanges()");
        }
        assert_eq!(browser.evaluate(STRUCTURE), json!([]), "{path}");
        let count = browser.evaluate(CONTROLS).as_u64().unwrap();
        assert!(count >= 5, "{path}: {count}");
        let mut reached = std::collections::BTreeSet::new();
        for _ in 0..count + 2 {
            browser.press("Tab", 9, "");
            let focused = browser.evaluate(FOCUSED);
            if let Some(place) = focused["place"].as_u64() {
                assert_eq!(focused["is_seen"], true, "{path}: {focused}");
                reached.insert(place);
            }
        }
        assert_eq!(reached.len() as u64, count, "{path}: {reached:?}");
    }
    assert!(browser.errors().is_empty(), "{:?}", browser.errors());
    served.finish();
}

/// Lists what is outside of its box in the drawing of the dependencies, and counts the
/// boxes and the lines.
const DRAWING: &str = r#"(() => {
  const faults = [];
  const boxes = [...document.querySelectorAll('svg.graph a > svg')];
  for (const box of boxes) {
    const width = box.width.baseVal.value, height = box.height.baseVal.value;
    const texts = [...box.querySelectorAll('text')].map(text => [text, text.getBBox()]);
    for (const [text, at] of texts)
      if (at.x < 1 || at.x + at.width > width - 1 || at.y < 1 || at.y + at.height > height)
        faults.push(text.textContent + ' is outside');
    const [[, id], [, state]] = texts;
    if (id.x + id.width > state.x) faults.push('an id overlaps a state');
  }
  const lines = [...document.querySelectorAll('svg.graph path.edge')];
  for (const line of lines)
    for (const box of boxes) {
      const left = box.x.baseVal.value, top = box.y.baseVal.value;
      for (let at = 2; at < line.getTotalLength() - 2; at += 1) {
        const point = line.getPointAtLength(at);
        if (point.x > left && point.x < left + box.width.baseVal.value
          && point.y > top && point.y < top + box.height.baseVal.value)
          faults.push('a line crosses a box');
      }
    }
  return {faults, boxes: boxes.length, lines: lines.length};
})()"#;

#[test]
fn lines_lead_around_boxes_and_texts_stay_inside_them() {
    let mut served = Served::start(1, &joined(), &[]);
    let Some(mut browser) = browser(&served) else {
        served.finish();
        return;
    };
    served.started(&["a"]);
    browser.open(&served.url);
    browser.open(&format!("{}/graph", served.origin()));
    let seen = browser.evaluate(DRAWING);
    assert_eq!(seen, json!({"faults": [], "boxes": 4, "lines": 4}));
    assert!(browser.errors().is_empty(), "{:?}", browser.errors());
    served.finish();
}
