//! The page of a trace in a browser: drawn, walked step by step, and no wider than its window.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::command::Workspace;
use crate::trace::{LOGS, stories};

/// Where browsers are, and what keeps them to themselves.
const BROWSERS: [&str; 3] = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const ALONE: [&str; 9] = [
    "--hide-scrollbars",
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

/// A page hangs where its script does.
const LONGEST: Duration = Duration::from_secs(60);

/// A page that shows another in a frame, since no window of a browser is as narrow as a telephone, and repeats its verdict.
fn framed(page: &str, width: u32) -> String {
    format!(
        r#"<!doctype html><meta charset="utf-8"><body><script>
        addEventListener('message', ({{ data }}) => {{
          const verdict = document.createElement('p');
          verdict.id = 'check';
          verdict.textContent = data;
          document.body.append(verdict);
        }});
        </script><iframe src="{page}#check" style="width:{width}px;height:900px;border:0"></iframe>"#
    )
}

/// The verdict of the page's own check, in a frame so wide; None without a browser, which is said.
fn verdict(workspace: &Workspace, page: &str, width: u32) -> Option<String> {
    let Some(browser) = BROWSERS.iter().find(|browser| Path::new(browser).exists()) else {
        eprintln!("skipped: there is no Chromium here to open the page in");
        return None;
    };
    workspace.write("frame.html", framed(page, width));
    let mut child = Command::new(browser)
        .args(ALONE)
        .arg(format!("--user-data-dir={}", workspace.path("browser").display()))
        .arg("--window-size=1400,1000")
        .args(["--virtual-time-budget=20000", "--dump-dom"])
        .arg(format!("file://{}", workspace.path("frame.html").display()))
        .stdout(std::fs::File::create(workspace.path("dom.html")).unwrap())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > LONGEST {
            child.kill().unwrap();
            panic!("{page} was not drawn within {LONGEST:?}");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let dom = workspace.read("dom.html");
    let (_, verdict) = dom.split_once(r#"<p id="check">"#).unwrap_or_else(|| panic!("no verdict in {page}"));
    Some(verdict.split("</p>").next().unwrap().to_owned())
}

/// Writes the page of some requests and has it checked in a wide window and in that of a telephone.
fn assert_drawn(workspace: &Workspace, ids: &str, logs: &[&str], drawn: &str) {
    workspace.run(&[&["trace", ids, "--format", "html", "-o", "page.html"], logs].concat()).exits(0);
    for width in [1280, 400] {
        let Some(verdict) = verdict(workspace, "page.html", width) else { return };
        assert_eq!(verdict, format!("ok: {drawn} drawn at {width} px"), "{ids}");
    }
}

#[test]
fn the_page_of_a_request_is_drawn_whole_and_fits_its_window() {
    assert_drawn(&stories(), "req-stall-06", &LOGS, "1 lives, 8 stages, 200 tokens");
}

#[test]
fn two_requests_are_drawn_side_by_side() {
    assert_drawn(&stories(), "req-slowqueue-01,req-lostengine-02", &LOGS, "2 lives, 12 stages, 0 tokens");
}

#[test]
fn four_thousand_tokens_are_drawn_and_walked() {
    let request = json!({"request_id": "long", "timestamp": "2025-06-01T09:00:00Z", "model": "m", "ttft_ms": 100,
                         "total_latency_ms": 80_080, "output_tokens": 4000, "itls_ms": vec![20.0; 3999]});
    let workspace = Workspace::with_records(&[request]);
    assert_drawn(&workspace, "long", &["log.ndjson"], "1 lives, 2 stages, 4000 tokens");
}

#[test]
fn hostile_ids_and_texts_are_drawn_as_text() {
    let id = "</script><img src=x onerror=document.title='owned'>\u{202e}";
    let request: Value = json!({"request_id": id, "timestamp": "2025-06-01T09:00:00Z", "model": "\"><script>1</script>",
                                "latency_ms": 5, "tenant": "x".repeat(300), "status": "success"});
    let workspace = Workspace::with_records(&[request]);
    workspace.write("ids.txt", id);
    workspace.run(&["trace", "--ids-from", "ids.txt", "--format", "html", "-o", "page.html", "log.ndjson"]).exits(0);
    for width in [1280, 400] {
        let Some(verdict) = verdict(&workspace, "page.html", width) else { return };
        assert_eq!(verdict, format!("ok: 1 lives, 1 stages, 0 tokens drawn at {width} px"));
    }
}
