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
