//! The states of a reliable connected queue pair, and the attributes that each change of them takes.
//!
//! Source: `ibv_modify_qp(3)` of rdma-core 55, the table for `IBV_QPT_RC`.

use ibverbs_sys as ffi;
use ibverbs_sys::ibv_qp_attr_mask as Mask;

/// A queue pair's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// New.
    Reset,
    /// Takes receives.
    Init,
    /// Answers its peer.
    ReadyToReceive,
    /// Sends too.
    ReadyToSend,
    /// Stopped: every request ends with an error.
    Error,
}

impl State {
    pub(super) fn raw(self) -> ffi::ibv_qp_state::Type {
        match self {
            Self::Reset => ffi::ibv_qp_state::IBV_QPS_RESET,
            Self::Init => ffi::ibv_qp_state::IBV_QPS_INIT,
            Self::ReadyToReceive => ffi::ibv_qp_state::IBV_QPS_RTR,
            Self::ReadyToSend => ffi::ibv_qp_state::IBV_QPS_RTS,
            Self::Error => ffi::ibv_qp_state::IBV_QPS_ERR,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Reset => "RESET",
            Self::Init => "INIT",
            Self::ReadyToReceive => "RTR",
            Self::ReadyToSend => "RTS",
            Self::Error => "ERR",
        }
    }

    /// The attributes that a change from here to `next` has to set; `None` where there is no such change.
    fn required(self, next: Self) -> Option<Mask> {
        Some(match (self, next) {
            (_, Self::Error | Self::Reset) => Mask::IBV_QP_STATE,
            (Self::Reset, Self::Init) => {
                Mask::IBV_QP_STATE | Mask::IBV_QP_PKEY_INDEX | Mask::IBV_QP_PORT | Mask::IBV_QP_ACCESS_FLAGS
            }
            (Self::Init, Self::ReadyToReceive) => {
                Mask::IBV_QP_STATE
                    | Mask::IBV_QP_AV
                    | Mask::IBV_QP_PATH_MTU
                    | Mask::IBV_QP_DEST_QPN
                    | Mask::IBV_QP_RQ_PSN
                    | Mask::IBV_QP_MAX_DEST_RD_ATOMIC
                    | Mask::IBV_QP_MIN_RNR_TIMER
            }
            (Self::ReadyToReceive, Self::ReadyToSend) => {
                Mask::IBV_QP_STATE
                    | Mask::IBV_QP_SQ_PSN
                    | Mask::IBV_QP_TIMEOUT
                    | Mask::IBV_QP_RETRY_CNT
                    | Mask::IBV_QP_RNR_RETRY
                    | Mask::IBV_QP_MAX_QP_RD_ATOMIC
            }
            _ => return None,
        })
    }
}

/// What is known of why a change was refused, for its error: that there is none from `from` to `to`, the attributes missing
/// from `set`, or else those whose values may be wrong.
pub(super) fn suspects(from: State, to: State, set: Mask) -> String {
    let Some(required) = from.required(to) else {
        return "; there is no such change".to_owned();
    };
    let missing = required.0 & !set.0;
    if missing != 0 {
        return format!("; not set: {}", names(missing));
    }
    match set.0 & !Mask::IBV_QP_STATE.0 {
        0 => String::new(),
        values => format!("; one of these has a value that the adapter refuses: {}", names(values)),
    }
}

fn names(mask: u32) -> String {
    const NAMES: [(Mask, &str); 15] = [
        (Mask::IBV_QP_STATE, "state"),
        (Mask::IBV_QP_PKEY_INDEX, "pkey_index"),
        (Mask::IBV_QP_PORT, "port"),
        (Mask::IBV_QP_ACCESS_FLAGS, "access_flags"),
        (Mask::IBV_QP_AV, "address vector"),
        (Mask::IBV_QP_PATH_MTU, "path_mtu"),
        (Mask::IBV_QP_DEST_QPN, "dest_qp_num"),
        (Mask::IBV_QP_RQ_PSN, "rq_psn"),
        (Mask::IBV_QP_MAX_DEST_RD_ATOMIC, "max_dest_rd_atomic"),
        (Mask::IBV_QP_MIN_RNR_TIMER, "min_rnr_timer"),
        (Mask::IBV_QP_SQ_PSN, "sq_psn"),
        (Mask::IBV_QP_TIMEOUT, "timeout"),
        (Mask::IBV_QP_RETRY_CNT, "retry_cnt"),
        (Mask::IBV_QP_RNR_RETRY, "rnr_retry"),
        (Mask::IBV_QP_MAX_QP_RD_ATOMIC, "max_rd_atomic"),
    ];
    let found = NAMES.iter().filter(|(bit, _)| mask & bit.0 != 0);
    found.map(|(_, name)| *name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let set = Mask::IBV_QP_STATE | Mask::IBV_QP_PORT;
        assert_eq!(suspects(State::Reset, State::Init, set), "; not set: pkey_index, access_flags");
        assert_eq!(suspects(State::Reset, State::ReadyToSend, set), "; there is no such change");
        let all = set | Mask::IBV_QP_PKEY_INDEX | Mask::IBV_QP_ACCESS_FLAGS;
        assert!(suspects(State::Reset, State::Init, all).ends_with("pkey_index, port, access_flags"));
        assert_eq!(suspects(State::ReadyToSend, State::Error, Mask::IBV_QP_STATE), "");
    }
}
