//! Public files of real systems, with answers computed by another program; skipped where they are not at hand.

use serde_json::{Value, json};

use crate::command::{Report, Workspace, real_data};
use crate::traffic::assert_close;

const YI: &str = "llmperf/yi34b_tgi_conc64_individual_responses.json";
const ANYSCALE: &str = "llmperf/anyscale_70b_individual.json";
const AZURE: &str = "azure/AzureLLMInferenceTrace_code.csv";

/// A report over one of the files.
fn report(arguments: &[&str], file: &str) -> Option<Report> {
    let path = real_data(file)?;
    Some(Workspace::new().report(&[arguments, &[path.to_str().unwrap()]].concat()))
}

/// Numbers given with six digits behind the point.
#[track_caller]
fn assert_given(row: &Value, columns: &[&str], given: &[f64]) {
    for (column, given) in columns.iter().zip(given) {
        let value = row[column].as_f64().unwrap_or_else(|| panic!("{column}: {row}"));
        assert_eq!(format!("{value:.6}"), format!("{given:.6}"), "{column}: {row}");
    }
}

const PERCENTILES: [&str; 3] = ["p50_ms", "p95_ms", "p99_ms"];

#[test]
fn llmperf_yi_on_tgi() {
    let Some(report) = report(&["latency", "--by", "input-bucket", "--metric", "total,ttft,tpot"], YI) else { return };
    let given = [
        ("total", [22394.467056, 23606.448006, 23777.881434]),
        ("ttft", [9436.927823, 11146.214323, 11319.558451]),
        // by our definition; the file's own per-token time is end to end / n
        ("tpot", [76.253958, 139.66577, 146.001573]),
    ];
    assert_eq!(report.rows().len(), given.len());
    for (row, (metric, percentiles)) in report.rows().iter().zip(given) {
        assert_eq!((&row["input_bucket"], &row["metric"]), (&json!("0-1K"), &json!(metric)));
        assert_eq!([&row["requests"], &row["failed"], &row["measured"]], [128, 86, 42]);
        assert_given(row, &PERCENTILES, &percentiles);
    }
    assert_given(&report.rows()[0], &["mean_ms", "max_ms"], &[22341.823999, 23821.505848]);
    assert_given(&report.rows()[1], &["mean_ms", "max_ms"], &[7531.542606, 11366.292115]);
}

#[test]
fn llmperf_yi_with_its_failures() {
    let Some(report) = report(&["latency", "--metric", "ttft", "--include-failed"], YI) else { return };
    let row = report.row();
    assert_eq!([&row["requests"], &row["failed"], &row["measured"]], [128, 86, 128]);
    assert_given(row, &PERCENTILES, &[0.0, 10687.771974, 11224.957729]);
    assert_given(row, &["mean_ms"], &[2471.287418]);
}

#[test]
fn llmperf_anyscale() {
    let Some(report) = report(&["latency", "--metric", "total,ttft,tpot"], ANYSCALE) else { return };
    let given = [
        ("total", [2259.533028, 3125.570576, 3705.700726]),
        ("ttft", [212.82956, 362.008377, 474.530519]),
        ("tpot", [13.838932, 20.529308, 34.529321]),
    ];
    for (row, (metric, percentiles)) in report.rows().iter().zip(given) {
        assert_eq!(row["metric"], metric);
        assert_eq!([&row["requests"], &row["failed"], &row["measured"]], [150, 0, 150]);
        assert_given(row, &PERCENTILES, &percentiles);
    }
}

/// The seconds of the AIBrix client, which have no suffix, by their names.
const AIBRIX_MAPS: [&str; 8] = [
    "--map",
    "ttft_ms=ttft:s",
    "--map",
    "decode_time_ms=generation_time:s",
    "--map",
    "timestamp=launch_time:s",
    "--map",
    "completed_at=finish_time:s",
];

#[test]
fn aibrix_with_a_map_for_its_seconds() {
    for (file, requests, ttft, decode, total) in [
        (
            "aibrix/aibrix_naive_output_4.1.csv",
            405,
            [33900.532961, 61514.851427, 63476.922646, 34758.949678],
            [78630.330086, 82794.977093, 83068.926678, 60916.517271],
            [97346.170664, 113586.387253, 116652.321882, 95675.467182],
        ),
        (
            "aibrix/aibrix_kvcache_dram_output_4.1.csv",
            455,
            [679.30007, 8824.812508, 15648.017101, 2558.589628],
            [1258.518696, 16161.625409, 28937.776756, 4041.489564],
            [2086.905003, 24372.53027, 38957.45616, 6600.079409],
        ),
    ] {
        let question = ["latency", "--metric", "ttft,decode,total", "--by", "input-bucket"];
        let Some(report) = report(&[&question[..], &AIBRIX_MAPS].concat(), file) else { return };
        let row = |metric: &str| report.rows().iter().find(|row| row["metric"] == metric).unwrap();
        let columns = ["p50_ms", "p95_ms", "p99_ms", "mean_ms"];
        for metric in ["ttft", "decode", "total"] {
            assert_eq!(row(metric)["input_bucket"], "16K-32K", "{file}");
            assert_eq!([&row(metric)["requests"], &row(metric)["measured"]], [requests, requests], "{file} {metric}");
        }
        assert_given(row("ttft"), &columns, &ttft);
        assert_given(row("decode"), &columns, &decode);
        // the difference of two epochs in seconds, right to within a microsecond
        for (column, given) in columns.iter().zip(total) {
            let value = row("total")[column].as_f64().unwrap();
            assert!((value - given).abs() < 0.001, "{file} total {column}: {value}, given {given}");
        }
    }
}

#[test]
fn aibrix_tokens() {
    let Some(report) = report(&["workload"], "aibrix/aibrix_naive_output_4.1.csv") else { return };
    let row = report.row();
    assert_eq!([&row["input_p50"], &row["input_p95"], &row["output_p50"]], [21073.0, 21202.0, 100.0]);
    assert_eq!(row["output_tokens"], 40500);
}

#[test]
fn azure_code_by_input_bucket() {
    let Some(report) = report(&["workload", "--by", "input-bucket"], AZURE) else { return };
    let given = [
        ("0-1K", 3339, [351.0, 968.0, 1013.62], [14.0, 91.0, 250.86]),
        ("1K-2K", 2171, [1473.0, 1981.0, 2037.0], [13.0, 87.0, 240.5]),
        ("2K-4K", 2068, [2686.5, 3853.65, 4061.0], [12.0, 88.65, 285.31]),
        ("4K-8K", 1241, [6192.0, 7436.0, 7437.0], [13.0, 94.0, 215.8]),
    ];
    assert_eq!(report.rows().len(), given.len());
    for (row, (label, requests, input, output)) in report.rows().iter().zip(given) {
        assert_eq!((&row["input_bucket"], &row["requests"]), (&json!(label), &json!(requests)));
        assert_given(row, &["input_p50", "input_p95", "input_p99"], &input);
        assert_given(row, &["output_p50", "output_p95", "output_p99"], &output);
    }
    let totals = &report.0["totals"];
    assert_eq!([&totals["requests"], &totals["input_tokens"], &totals["output_tokens"]], [8819, 18_059_974, 245_896]);
    assert_eq!(report.0["source"]["first"], "2023-11-16T18:17:03.979960+00:00");
    assert_eq!(report.0["source"]["last"], "2023-11-16T19:14:19.928016+00:00");
}

#[test]
fn azure_code_in_thousands_and_over_all() {
    let question = ["workload", "--by", "input-bucket", "--input-buckets", "1000,2000,4000,8000"];
    let Some(report) = report(&question, AZURE) else { return };
    assert_eq!(report.column("requests"), [3271, 2150, 2105, 1293]);
    for (row, p95) in report.rows().iter().zip([92.0, 82.0, 95.8, 93.0]) {
        assert_close(&row["output_p95"], p95, "output_p95");
    }
    let all = self::report(&["workload"], AZURE).unwrap();
    assert_given(all.row(), &["input_p50", "input_p95", "input_p99"], &[1469.0, 7303.3, 7436.0]);
    assert_given(all.row(), &["output_p50", "output_p95", "output_p99"], &[13.0, 90.0, 251.46]);
}

#[test]
fn azure_code_in_its_busiest_minutes() {
    let question = ["workload", "--by", "minute", "--sort", "requests:desc", "--top", "3"];
    let Some(report) = report(&question, AZURE) else { return };
    let row = |minute: &str, requests: u64, input: u64, output: u64| {
        (json!(minute), json!(requests), json!(input), json!(output))
    };
    let found: Vec<_> = report
        .rows()
        .iter()
        .map(|row| {
            (row["minute"].clone(), row["requests"].clone(), row["input_tokens"].clone(), row["output_tokens"].clone())
        })
        .collect();
    assert_eq!(
        found,
        [
            row("2023-11-16T18:31:00+00:00", 585, 1_242_714, 15_154),
            row("2023-11-16T18:20:00+00:00", 531, 1_121_290, 14_293),
            row("2023-11-16T18:26:00+00:00", 476, 940_747, 12_934),
        ]
    );
}

/// P50, P95, P99, mean of metrics, with no flag.
#[track_caller]
fn assert_measured(file: &str, requests: u64, given: &[(&str, [f64; 4])]) {
    let metrics: Vec<&str> = given.iter().map(|(metric, _)| *metric).collect();
    let Some(report) = report(&["latency", "--metric", &metrics.join(",")], file) else { return };
    let alone = given.len() == 1;
    for (metric, numbers) in given {
        let row = report.rows().iter().find(|row| alone || row["metric"] == *metric).unwrap();
        assert_eq!([&row["requests"], &row["measured"]], [requests, requests], "{file} {metric}");
        for (column, given) in ["p50_ms", "p95_ms", "p99_ms", "mean_ms"].iter().zip(numbers) {
            // end-to-end times that are differences of epoch seconds are right to a microsecond
            let value = row[*column].as_f64().unwrap();
            assert!((value - given).abs() <= 2e-3, "{file} {metric} {column}: {value} instead of {given}");
        }
    }
}

#[test]
fn files_of_known_producers_need_no_map() {
    assert_measured(
        "aibrix/aibrix_naive_output_4.1.csv",
        405,
        &[
            ("total", [97346.170664, 113586.387253, 116652.321882, 95675.467182]),
            ("ttft", [33900.532961, 61514.851427, 63476.922646, 34758.949678]),
            ("tpot", [794.245758, 836.3129, 839.080067, 615.318356]),
            ("decode", [78630.330086, 82794.977093, 83068.926678, 60916.517271]),
        ],
    );
    assert_measured(
        "aiperf/qwen_concurrency4_profile_export.jsonl",
        10,
        &[
            ("total", [3780.201288, 3783.02745, 3783.053612, 3759.827328]),
            ("ttft", [53.509671, 70.735078, 70.739626, 54.596352]),
            ("tpot", [18.649623, 18.740845, 18.741306, 18.619251]),
        ],
    );
    assert_measured(
        "aiperf/llama_concurrency1_profile_export.jsonl",
        64,
        &[
            ("total", [3785.63391, 3928.607037, 3979.486371, 3776.207267]),
            ("ttft", [26.63776, 29.674867, 31.436156, 26.963175]),
            ("tpot", [18.882127, 19.605531, 19.853345, 18.840423]),
        ],
    );
    assert_measured(
        "inferencex/multiturn_tp4_bs64_offloadon_metrics_client_metrics.csv",
        180,
        &[
            ("total", [744224.984, 2567052.99025, 3481928.18747, 939663.085578]),
            ("ttft", [10330.1895, 70934.25485, 116473.38581, 19726.286606]),
            ("tpot", [3268.7485, 3603.27345, 3805.50668, 3287.240478]),
        ],
    );
}

/// Requests, input and output tokens, and how many other records are skipped.
#[track_caller]
fn assert_requests(file: &str, requests: u64, tokens: [u64; 2], skipped: u64) -> Option<Report> {
    let path = real_data(file)?;
    let query = "SELECT request_id, timestamp, input_tokens, output_tokens, cached_tokens, total_latency_ms, ttft_ms, \
                 model_name, response_cache_hit FROM logs ORDER BY timestamp";
    let run = Workspace::new().run(&["sql", query, "--format", "json", path.to_str().unwrap()]);
    let report = run.report_anyway();
    let sum = |column: &str| report.column(column).iter().filter_map(Value::as_u64).sum::<u64>();
    assert_eq!([report.counted("used"), report.counted("skipped"), report.counted("rejected")], [requests, skipped, 0]);
    assert_eq!([sum("input_tokens"), sum("output_tokens")], tokens, "{file}");
    Some(report)
}

#[test]
fn nested_spans_and_observations_count_once() {
    if let Some(report) = assert_requests("otel/agentevals_tempo_otlp_batches.json", 2, [4648, 129], 84) {
        // differences of the times in the file, which its exporter rounded
        let total = report.column("total_latency_ms");
        assert_eq!(total, [json!(1816.2606), json!(2703.3155)]);
        assert_eq!(report.column("cached_tokens"), [json!(0), json!(0)]);
    }
    if let Some(report) = assert_requests("otel/inferenceperf_tau2_retail_claude_code_315397.json", 2, [3470, 215], 5) {
        assert_eq!(report.column("total_latency_ms"), [json!(16.725), json!(8.945)]);
    }
    if let Some(report) = assert_requests("langfuse/vercel-aisdk-2025-11-17.trace.json", 1, [62, 85], 2) {
        assert_eq!(report.row()["total_latency_ms"], 3043.0);
    }
}

#[test]
fn an_answer_that_was_not_streamed_has_no_ttft_and_none_is_no_cache_hit() {
    let Some(report) = assert_requests("litellm/spend_logs_payload.json", 1, [10, 20], 0) else { return };
    let row = report.row();
    assert_eq!((&row["model_name"], &row["total_latency_ms"]), (&json!("gpt-4o"), &json!(4.583)));
    for column in ["ttft_ms", "cached_tokens", "response_cache_hit"] {
        assert_eq!(row[column], Value::Null, "{column}");
    }
}

#[test]
fn summaries_and_server_logs_hold_no_requests_and_are_no_error() {
    for file in [
        "inferencex/vllm_bench_kimik2.5_1k1k_conc64_summary.json",
        "aiperf/qwen_concurrency4_profile_export_aiperf.json",
        "llmperf/anyscale_70b_summary.json",
        "llmperf/yi34b_tgi_conc64_summary.json",
    ] {
        if let Some(report) = assert_requests(file, 0, [0, 0], 1) {
            assert_eq!(report.note("skipped").0, "records are no requests: summary of a run", "{file}");
        }
    }
    let log = "inferencex/vllm_server_dsr1_tp4_bs32_offloadon.log";
    if let Some(report) = assert_requests(log, 0, [0, 0], 3376) {
        assert_eq!(report.note("skipped").0, "records are no requests: text");
    }
}

#[test]
fn a_clock_that_is_no_calendar_leaves_all_rows_undated() {
    for (file, rows) in [
        ("inferencex/multiturn_tp4_bs64_offloadon_metrics_client_metrics.csv", 180),
        ("mooncake/synthetic_trace.jsonl", 3993),
    ] {
        let Some(report) = report(&["workload"], file) else { return };
        assert_eq!((report.counted("used"), report.counted("undated")), (rows, rows), "{file}");
    }
}
