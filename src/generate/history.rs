//! What became of a request: the calls made for it, one after the other, and the lines they leave
//! in the three logs.

use super::attempt::Attempt;
use super::draw::{Draws, Purpose};
use super::failure::{Fault, Refusal};
use super::line::{AppLine, EngineLine, GatewayLine};
use super::quantiles::Quantiles;
use super::request::{Request, second_id};

/// How often the gateway tries once more after an engine's fault, in 10,000.
const RETRY_SHARE: u32 = 4_000;

/// How often a client reconnects after its stream broke off and the gateway did not try again, in
/// 10,000.
const RECONNECT_SHARE: u32 = 5_000;

/// Microseconds between the end of a failed call and the next call.
const RETRY_DELAY_US: Quantiles =
    Quantiles([500_000, 900_000, 1_500_000, 2_200_000, 3_000_000, 3_500_000, 4_500_000, 7_000_000, 9_000_000]);

/// Microseconds from the app to the gateway, and back.
const HOP_US: Quantiles = Quantiles([200, 500, 900, 1_400, 2_200, 3_000, 6_000, 20_000, 60_000]);

/// Microseconds in which the gateway checks the key.
const AUTH_US: Quantiles = Quantiles([80, 250, 400, 700, 1_500, 2_500, 8_000, 30_000, 80_000]);

/// Microseconds between gateway and engine, both ways.
const NETWORK_US: Quantiles = Quantiles([300, 900, 1_500, 2_500, 4_500, 7_000, 20_000, 60_000, 150_000]);

const HOSTS: [&str; 3] = ["gw-1", "gw-2", "gw-3"];

/// The lines of one request.
pub struct History {
    pub app: AppLine,
    pub gateway: Vec<GatewayLine>,
    pub engine: Vec<EngineLine>,
}

/// One call to the gateway.
pub struct Call {
    pub request_id: String,
    /// 1 for a new id, 2 where the gateway tries again under the same one.
    pub number: u64,
    /// The id whose stream this call takes up again.
    pub previous_request_id: Option<String>,
    sent_at_us: i64,
    draws: Draws,
}

/// A call's way through the gateway.
pub struct Passage {
    pub at_us: i64,
    pub auth_us: u64,
    pub network_us: u64,
    /// Exactly auth, network and the engine's total.
    pub latency_us: u64,
    pub http_status: u16,
    pub error_code: Option<&'static str>,
    pub host: &'static str,
}

impl History {
    /// Lets a request run its course: no more than two calls.
    pub fn of(request: &Request) -> Self {
        let (mut gateway, mut engine) = (Vec::with_capacity(1), Vec::with_capacity(1));
        let mut call = Call::first(request);
        loop {
            let outcome = call.outcome(request);
            let passage = Passage::of(&call, &outcome);
            gateway.push(GatewayLine::new(request, &call, &passage));
            if let Ok(attempt) = &outcome {
                let at_us = passage.at_us + passage.auth_us as i64;
                engine.push(EngineLine::new(request, &call, at_us, attempt));
            }
            let end_us = passage.at_us + passage.latency_us as i64;
            let fault = outcome.ok().and_then(|attempt| attempt.fault);
            if let Some(next) = fault.and_then(|fault| call.next(request, fault, end_us)) {
                call = next;
                continue;
            }
            let complete_at_us = end_us + HOP_US.at(request.draws.unit(Purpose::Hop)) as i64;
            let app = AppLine::new(request, complete_at_us, passage.error_code.is_none());
            return History { app, gateway, engine };
        }
    }
}

impl Call {
    fn first(request: &Request) -> Self {
        Call {
            request_id: request.id.clone(),
            number: 1,
            previous_request_id: None,
            sent_at_us: request.arrival.at_us,
            draws: request.draws.of_call(0),
        }
    }

    /// What the engine made of the call, unless the gateway refused it.
    fn outcome(&self, request: &Request) -> Result<Attempt, Refusal> {
        // what the gateway has let pass once, it lets pass again
        let refusal = Refusal::draw(self.draws, request.arrival.load).filter(|_| self.is_first());
        refusal.map_or_else(|| Ok(Attempt::run(request, self.draws)), Err)
    }

    fn is_first(&self) -> bool {
        self.number == 1 && self.previous_request_id.is_none()
    }

    /// The call that follows this one's fault, if there is one.
    fn next(&self, request: &Request, fault: Fault, end_us: i64) -> Option<Self> {
        if !self.is_first() {
            return None;
        }
        let sent_at_us = end_us + RETRY_DELAY_US.at(self.draws.unit(Purpose::RetryDelay)) as i64;
        let draws = request.draws.of_call(1);
        if self.draws.chance(Purpose::Retry, RETRY_SHARE) {
            let request_id = self.request_id.clone();
            return Some(Call { request_id, number: 2, previous_request_id: None, sent_at_us, draws });
        }
        let broken_stream = request.stream && fault == Fault::BrokenAnswer;
        (broken_stream && draws.chance(Purpose::Retry, RECONNECT_SHARE)).then(|| Call {
            request_id: second_id(request),
            number: 1,
            previous_request_id: Some(self.request_id.clone()),
            sent_at_us,
            draws,
        })
    }
}

impl Passage {
    fn of(call: &Call, outcome: &Result<Attempt, Refusal>) -> Self {
        let auth_us = AUTH_US.at(call.draws.unit(Purpose::Auth));
        let network_us = NETWORK_US.at(call.draws.unit(Purpose::Network));
        let (http_status, error_code) = match outcome {
            Err(refusal) => (refusal.http_status(), Some(refusal.gateway_code())),
            Ok(Attempt { fault: Some(fault), .. }) => (fault.http_status(), Some(fault.gateway_code())),
            Ok(Attempt { fault: None, .. }) => (200, None),
        };
        let engine_us = outcome.as_ref().map_or(0, Attempt::total_us);
        Passage {
            at_us: call.sent_at_us + HOP_US.at(call.draws.unit(Purpose::Hop)) as i64,
            auth_us,
            network_us,
            latency_us: auth_us + network_us + engine_us,
            http_status,
            error_code,
            host: HOSTS[call.draws.below(Purpose::Host, HOSTS.len() as u64) as usize],
        }
    }
}
