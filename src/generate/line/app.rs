//! `app`: one line per request of a user, whatever number of calls it took.

use anyhow::Result;

use crate::generate::request::Request;

use super::{Fields, Line};

#[derive(Default)]
pub struct AppLine {
    request_id: String,
    session_id: String,
    at_us: i64,
    business_line: &'static str,
    user_tag: String,
    prompt_version: &'static str,
    prompt_hash: String,
    complete_at_us: i64,
    status: &'static str,
}

impl AppLine {
    pub fn new(request: &Request, complete_at_us: i64, answered: bool) -> Self {
        AppLine {
            request_id: request.id.clone(),
            session_id: request.session_id.clone(),
            at_us: request.arrival.at_us,
            business_line: request.line.name,
            user_tag: request.user_tag.clone(),
            prompt_version: request.prompt_version,
            prompt_hash: request.prompt_hash.clone(),
            complete_at_us,
            status: if answered { "success" } else { "error" },
        }
    }
}

impl Line for AppLine {
    const LOG: &'static str = "app";

    fn at_us(&self) -> i64 {
        self.at_us
    }

    fn write<F: Fields>(&self, fields: &mut F) -> Result<()> {
        fields.text("request_id", self.request_id.as_str())?;
        fields.text("session_id", self.session_id.as_str())?;
        fields.time("timestamp", self.at_us)?;
        fields.text("business_line", self.business_line)?;
        fields.text("user_tag", self.user_tag.as_str())?;
        fields.text("prompt_version", self.prompt_version)?;
        fields.text("prompt_hash", self.prompt_hash.as_str())?;
        fields.time("complete_at", self.complete_at_us)?;
        fields.text("status", self.status)
    }
}
