//! What the kernels have to do on any device.
//!
//! Each check takes a device and panics where the device does not do as the kernels' documentation says; the test binaries
//! `cpu_device` and `gpu` run all of them, by [`for_each_check!`](crate::for_each_check!), on the two devices.

pub mod all_reduce;
pub mod all_reduce_streams;
pub mod barrier;
pub mod conversions;
pub mod fifo;
pub mod limits;
pub mod loading;
pub mod ping_pong;
pub mod ports;
pub mod reductions;
pub mod semaphores;
pub mod transfer;
pub mod waits;

mod check_module;
mod rig;

pub use rig::Ends;

/// Hands every check, as its module's and its own name, to the macro `$with`: one list for all devices.
#[macro_export]
macro_rules! for_each_check {
    ($with:ident) => {
        $with! {
            ping_pong::semaphores_bounce;
            ping_pong::ll8_packets_bounce;
            ping_pong::ll16_packets_bounce;
            ping_pong::messages_bounce;
            ping_pong::a_late_warp_is_waited_for;
            semaphores::a_bounded_semaphore_admits_so_many;
            barrier::every_block_is_held_back;
            transfer::puts_at_every_pair_of_offsets;
            transfer::gets_at_every_pair_of_offsets;
            transfer::puts_and_gets_with_any_grid;
            transfer::each_block_of_a_put_signals_once;
            transfer::bulk_puts;
            transfer::ll8_packets_arrive;
            transfer::ll16_packets_arrive;
            all_reduce::fewer_elements_than_ranks;
            all_reduce::counts_that_do_not_divide;
            all_reduce::more_ranks_than_a_warp;
            all_reduce::input_stays_and_in_place_is_the_same;
            all_reduce::a_captured_round_replays;
            all_reduce::flags_wrap;
            all_reduce::a_missing_rank_is_reported;
            all_reduce_streams::a_second_stream_waits_its_turn;
            all_reduce_streams::rounds_of_two_streams;
            all_reduce_streams::two_groups_at_once;
            all_reduce_streams::the_first_round_is_recorded;
            all_reduce_streams::a_failed_recording_leaves_all_as_it_was;
            waits::a_silent_peer_is_reported_and_the_next_round_is_right;
            waits::every_wait_times_out;
            waits::an_abort_ends_every_wait;
            waits::an_abort_before_the_launch_counts;
            fifo::every_trigger_comes_once;
            fifo::a_proxy_serves_its_device;
            fifo::a_failed_handler_ends_the_kernel;
            fifo::a_stop_ends_the_kernel;
            ports::messages_bounce_through_ports;
            ports::a_flushed_put_has_arrived;
            ports::writes_come_beside_a_full_grid;
            ports::all_gather_through_ports;
            ports::two_streams_share_a_port;
            ports::a_ports_first_use_is_recorded;
            conversions::every_f16_to_e4m3b15;
            conversions::every_e4m3b15_to_f16;
            conversions::f32_to_e4m3b15_and_back;
            conversions::tails_and_misaligned_buffers;
            conversions::every_pair_in_every_width;
            reductions::every_type_in_every_accumulator;
            reductions::a_wider_accumulator_changes_the_sum;
            reductions::rows_of_counts_that_do_not_divide;
            limits::one_block_too_many;
            limits::shapes_that_cannot_run;
            limits::kernels_that_are_not_there;
            loading::many_threads_ask_at_once;
        }
    };
}
