//! Ranks that are processes: this program, started again.

use std::time::Duration;

use warpwire::ErrorKind;
use warpwire::abi::Rank;
use warpwire::bootstrap::{Tag, TcpBootstrap, TcpOptions, TcpRoot};
use warpwire::communicator::Communicator;
use warpwire::connection::EndpointConfig;
use warpwire::device::Device;

use crate::exercises::{
    bounce_with_everybody, every_element_is_the_sum, launch_wait, many_receives_leave_nothing_behind,
    the_host_signals_the_peers_kernel, written_pieces_arrive_in_order,
};
use crate::jobs::{LONG, channel, connect, device};
use crate::ports;
use crate::process::{Child, command, hear_parent, tell_parent};

/// The processes of a job, by rank, that each do `what`; none where this machine has no such device. Rank 0 takes a port of its
/// own and says where it is.
fn start(what: &str, size: usize) -> Option<Vec<Child>> {
    start_with(what, size, |_| Vec::new())
}

/// The same with variables for each rank.
fn start_with(
    what: &str,
    size: usize,
    variables: impl Fn(usize) -> Vec<(&'static str, String)>,
) -> Option<Vec<Child>> {
    if let Err(error) = Device::open(crate::DEVICE) {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        println!("skipped: {error}");
        return None;
    }
    let begin = |rank: usize| {
        let role = format!("{rank} {size} {what}");
        Child::spawn(command(&role).envs(variables(rank))).expect("the test program starts again")
    };
    let mut job = vec![begin(0)];
    let id = job[0].hear();
    for rank in 1..size {
        let mut child = begin(rank);
        child.tell(&id);
        job.push(child);
    }
    Some(job)
}

/// What a child does, as `start` has told it.
pub fn play(role: &str) {
    let mut words = role.splitn(3, ' ');
    let mut number = || words.next().unwrap().parse::<usize>().unwrap();
    let (rank, size) = (number(), number());
    let options = TcpOptions::from_env().unwrap().interfaces("=lo").unwrap().timeout(LONG);
    let group = if rank == 0 {
        let root = TcpRoot::bind(options).unwrap();
        tell_parent(&root.id().unwrap().to_string());
        root.join(size).unwrap()
    } else {
        let id = hear_parent().unwrap().parse().unwrap();
        TcpBootstrap::connect(&id, Rank(rank as u32), size, options).unwrap()
    };
    let device = device();
    let what = words.next().unwrap();
    if what == "die before" {
        if rank == 1 {
            // As a fault would end it: nothing is said.
            std::process::abort();
        }
        let error = Communicator::new(std::sync::Arc::new(group), &device).unwrap_err();
        tell_parent(&error.to_string());
        hear_parent();
        return;
    }
    let communicator = Communicator::new(std::sync::Arc::new(group), &device).unwrap();
    match what {
        "bounce" => {
            let per_peer = if size == 2 { 8 } else { 1 };
            bounce_with_everybody(&communicator, per_peer, 4 * 3001, 25);
        }
        "signal and write" => {
            the_host_signals_the_peers_kernel(&communicator);
            written_pieces_arrive_in_order(&communicator);
        }
        "gather through ports" => ports::gather(&communicator),
        "bounce through ports" => ports::bounce(&communicator),
        "all-reduce" => every_element_is_the_sum(&communicator),
        "receive" => many_receives_leave_nothing_behind(&communicator),
        "miss a rank" => miss_a_rank(&communicator),
        "lose a peer" => lose_a_peer(&communicator),
        "other hosts" => {
            let peer = Rank(1 - rank as u32);
            let error =
                communicator.connect(EndpointConfig::CudaIpc, peer, Tag(1)).unwrap().wait(LONG).unwrap_err();
            tell_parent(&error.to_string());
            communicator.barrier().unwrap();
        }
        other => panic!("no child does {other:?}"),
    }
}

/// Rank 1 waits to be killed; the others wait for it, in several ways at once.
fn miss_a_rank(communicator: &Communicator) {
    communicator.barrier().unwrap();
    if communicator.rank() == Rank(1) {
        tell_parent("ready");
        hear_parent();
        return;
    }
    let gone = Rank(1);
    let mut connecting = communicator.connect(EndpointConfig::CudaIpc, gone, Tag(1)).unwrap();
    let mut receiving = communicator.recv_memory(gone, Tag(2)).unwrap();
    tell_parent("ready");
    tell_parent(&connecting.wait(LONG).unwrap_err().to_string());
    tell_parent(&receiving.wait(LONG).unwrap_err().to_string());
    tell_parent(&communicator.barrier().unwrap_err().to_string());
    hear_parent();
}

/// Rank 1 is killed when the channels are there: kernels that wait for it end by their deadline, and what is its own can be
/// dropped.
fn lose_a_peer(communicator: &Communicator) {
    let peer = Rank(1 - communicator.rank().0);
    let connection = connect(communicator, peer);
    let channel = channel(communicator, &connection, 6);
    communicator.barrier().unwrap();
    tell_parent("ready");
    if communicator.rank() == Rank(1) {
        hear_parent();
        return;
    }
    hear_parent();
    let stream = communicator.context().stream().unwrap();
    launch_wait(communicator, &stream, &channel.base_handle().semaphore, Duration::from_millis(200));
    tell_parent(&stream.synchronize().unwrap_err().to_string());
    let error = communicator
        .build_semaphore(&connection, Tag(3))
        .and_then(|mut pending| pending.wait(LONG))
        .unwrap_err();
    tell_parent(&error.to_string());
    let first = channel.base_handle().semaphore.inbound.token;
    drop(channel);
    let begun = std::time::Instant::now();
    while communicator.lent_slots() > 0 {
        assert!(begun.elapsed() < LONG);
    }
    // The device may not know yet that the peer is dead: the slot is given to nobody.
    let taken: Vec<_> = (0..10).map(|_| communicator.context().tokens().take().unwrap()).collect();
    assert!(taken.iter().all(|token| token.address() != first));
    tell_parent("dropped");
    hear_parent();
}

#[test]
fn two_processes_have_many_channels() {
    start("bounce", 2).into_iter().flatten().for_each(Child::end);
}

#[test]
fn eight_processes_have_channels_with_each_other() {
    start("bounce", 8).into_iter().flatten().for_each(Child::end);
}

#[test]
fn processes_reduce() {
    for size in [2, 4, 8] {
        start("all-reduce", size).into_iter().flatten().for_each(Child::end);
    }
}

#[test]
fn a_hundred_thousand_receives_on_one_tag_leave_nothing_behind() {
    start("receive", 2).into_iter().flatten().for_each(Child::end);
}

/// Each rank's kernel and connections have a queue of the GPU's each.
fn start_with_queues(what: &str, size: usize) -> Option<Vec<Child>> {
    start_with(what, size, |_| vec![("CUDA_DEVICE_MAX_CONNECTIONS", "32".to_owned())])
}

#[test]
fn processes_gather_through_ports() {
    for size in [2, 4, 8] {
        start_with_queues("gather through ports", size).into_iter().flatten().for_each(Child::end);
    }
}

#[test]
fn messages_of_processes_bounce_through_ports() {
    start_with_queues("bounce through ports", 2).into_iter().flatten().for_each(Child::end);
}

#[test]
fn hosts_signal_and_write_across_processes() {
    start("signal and write", 2).into_iter().flatten().for_each(Child::end);
}

#[test]
fn a_rank_that_dies_before_there_is_a_communicator_is_named() {
    let Some(mut job) = start("die before", 3) else { return };
    for rank in [0, 2] {
        let line = job[rank].hear();
        assert!(line.contains("rank 1 is lost"), "{line}");
    }
    // None ends before all have said so: it could be missed itself.
    for rank in [0, 2] {
        job[rank].tell("end");
    }
}

#[test]
fn a_killed_rank_is_named_by_everybody_who_waits_for_it() {
    let Some(mut job) = start("miss a rank", 4) else { return };
    job.iter_mut().for_each(|child| assert_eq!(child.hear(), "ready"));
    job.remove(1).kill();
    for child in &mut job {
        let expected =
            ["connecting with rank 1 on tag 1: ", "receiving memory with rank 1 on tag 2: ", "barrier: "];
        for begin in expected {
            let line = child.hear();
            assert!(line.starts_with(begin) && line.contains("rank 1 is lost"), "{line}");
        }
    }
    job.into_iter().for_each(Child::end);
}

#[test]
fn a_peer_that_dies_leaves_kernels_that_end_and_slots_that_nobody_gets() {
    let Some(mut job) = start("lose a peer", 2) else { return };
    job.iter_mut().for_each(|child| assert_eq!(child.hear(), "ready"));
    job.remove(1).kill();
    let mut left = job.remove(0);
    let line = left.ask("go on");
    assert!(line.contains("rank 1") && line.contains("channel 6"), "{line}");
    let line = left.hear();
    assert!(
        line.starts_with("building a semaphore with rank 1") && line.contains("rank 1 is lost"),
        "{line}"
    );
    assert_eq!(left.hear(), "dropped");
    left.end();
}

/// Under `WARPWIRE_HOST_ID` one machine acts out two.
#[test]
fn processes_act_out_two_hosts() {
    let Some(mut job) =
        start_with("other hosts", 2, |rank| vec![("WARPWIRE_HOST_ID", format!("node{rank}"))])
    else {
        return;
    };
    for (rank, child) in job.iter_mut().enumerate() {
        let line = child.hear();
        assert!(line.contains(&format!("CudaIpc does not connect this rank to rank {}", 1 - rank)), "{line}");
    }
    job.into_iter().for_each(Child::end);
}
