//! `gateway`: one line per call that the gateway answered, refused ones too.

use anyhow::Result;

use crate::generate::history::{Call, Passage};
use crate::generate::request::Request;

use super::{Fields, Line};

#[derive(Default)]
pub struct GatewayLine {
    request_id: String,
    at_us: i64,
    tenant: &'static str,
    app: &'static str,
    model: &'static str,
    http_status: u64,
    error_code: Option<&'static str>,
    stream: bool,
    latency_us: u64,
    auth_us: u64,
    network_us: u64,
    temperature_thousandths: u64,
    top_p_thousandths: u64,
    max_tokens: u64,
    attempt: u64,
    previous_request_id: Option<String>,
    host: &'static str,
}

impl GatewayLine {
    pub fn new(request: &Request, call: &Call, passage: &Passage) -> Self {
        GatewayLine {
            request_id: call.request_id.clone(),
            at_us: passage.at_us,
            tenant: request.tenant,
            app: request.app,
            model: request.model.name,
            http_status: u64::from(passage.http_status),
            error_code: passage.error_code,
            stream: request.stream,
            latency_us: passage.latency_us,
            auth_us: passage.auth_us,
            network_us: passage.network_us,
            temperature_thousandths: u64::from(request.temperature_thousandths),
            top_p_thousandths: u64::from(request.top_p_thousandths),
            max_tokens: request.max_tokens,
            attempt: call.number,
            previous_request_id: call.previous_request_id.clone(),
            host: passage.host,
        }
    }
}

impl Line for GatewayLine {
    const LOG: &'static str = "gateway";

    fn at_us(&self) -> i64 {
        self.at_us
    }

    fn write<F: Fields>(&self, fields: &mut F) -> Result<()> {
        fields.text("request_id", self.request_id.as_str())?;
        fields.time("timestamp", self.at_us)?;
        fields.text("tenant", self.tenant)?;
        fields.text("app", self.app)?;
        fields.text("model", self.model)?;
        fields.whole("http_status", self.http_status)?;
        fields.text("error_code", self.error_code)?;
        fields.flag("stream", self.stream)?;
        fields.thousandths("latency_ms", self.latency_us)?;
        fields.thousandths("auth_ms", self.auth_us)?;
        fields.thousandths("network_ms", self.network_us)?;
        fields.thousandths("temperature", self.temperature_thousandths)?;
        fields.thousandths("top_p", self.top_p_thousandths)?;
        fields.whole("max_tokens", self.max_tokens)?;
        fields.whole("attempt", self.attempt)?;
        fields.text("previous_request_id", self.previous_request_id.as_deref())?;
        fields.text("host", self.host)
    }
}
