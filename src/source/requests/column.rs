//! Which role is believed about a column.

use crate::record::Column;
use crate::request::Role;

const GATEWAY: Role = Role::Gateway;
const ENGINE: Role = Role::Engine;
const APP: Role = Role::App;

/// The order of trust for a column: who measures it, who decides it, who knows whose it is.
pub(super) fn trust(column: Column) -> [Role; 3] {
    use Column::*;
    match column {
        QueueWaitMs | PrefillTimeMs | DecodeTimeMs | PreprocessMs | PostprocessMs | TtftMs | TpotMs | ScheduledAt
        | FirstTokenAt | GpuId | GpuPool | BatchSize | GpuMemPeakMb | GpuUtil | CachedTokens | CacheHit | ModelName
        | ModelVersion | FinishReason | ErrorStage | Stream | Priority | InputTruncated | OriginalInputTokens
        | BatchId | Deployment => [ENGINE, GATEWAY, APP],
        BusinessLine | UserTag | App | SessionId | PromptHash | PromptVersion | Tags => [APP, GATEWAY, ENGINE],
        // the outermost clock tells what the user waited for
        Timestamp | CompletedAt | TotalLatencyMs => [GATEWAY, APP, ENGINE],
        _ => [GATEWAY, ENGINE, APP],
    }
}

/// Whether all attempts of a request have the column in common: who sent it, and what it is part of.
pub(super) fn is_of_the_whole(column: Column) -> bool {
    use Column::*;
    matches!(
        column,
        RequestId | TraceId | SessionId | BusinessLine | Tenant | UserTag | App | Tags | PromptHash | PromptVersion
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_the_engines_status_the_gateways_and_the_business_line_the_apps() {
        assert_eq!(trust(Column::QueueWaitMs)[0], Role::Engine);
        assert_eq!(trust(Column::Status)[0], Role::Gateway);
        assert_eq!(trust(Column::Tenant)[0], Role::Gateway);
        assert_eq!(trust(Column::BusinessLine)[0], Role::App);
        assert_eq!(trust(Column::App)[0], Role::App);
        assert_eq!(trust(Column::InputTokens)[0], Role::Gateway);
    }
}
