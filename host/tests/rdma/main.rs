//! x
#[test]
fn devices() {
    for item in std::fs::read_dir("/sys/class/infiniband").unwrap() {
        let path = item.unwrap().path();
        println!("{path:?} {:?}", std::fs::read_to_string(path.join("node_guid")));
        for i in 0..4 { println!("{:?} {:?}", std::fs::read_to_string(path.join(format!("ports/1/gids/{i}"))), std::fs::read_to_string(path.join(format!("ports/1/gid_attrs/types/{i}")))); }
    }
}
