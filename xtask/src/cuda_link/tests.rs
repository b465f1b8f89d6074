//! The shim at work: a C program linked with it, with and without a library that stands for the driver.

use super::*;

/// Takes more arguments of both kinds than there are registers for.
const DRIVER: &str = "
int cuProbe(long a, long b, long c, long d, long e, long f, long g,
            double p, double q, double r, double s, double t, double u, double v, double w, double x) {
    return a == 1 && b == 2 && c == 3 && d == 4 && e == 5 && f == 6 && g == 7 && p == .5 && q == 1.5 && r == 2.5
        && s == 3.5 && t == 4.5 && u == 5.5 && v == 6.5 && w == 7.5 && x == 8.5 ? 77 : 1;
}
";

const PROGRAM: &str = "
#include <stdio.h>
int cuProbe(long, long, long, long, long, long, long,
            double, double, double, double, double, double, double, double, double);
int cuAbsent(void);
int cuGetErrorName(int, const char **);
int main(void) {
    const char *text = \"\";
    for (int i = 0; i < 2; i++)
        printf(\"%d \", cuProbe(1, 2, 3, 4, 5, 6, 7, .5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5));
    printf(\"%d \", cuAbsent());
    printf(\"%d \", cuGetErrorName(34, &text));
    printf(\"%s\", text);
    return 0;
}
";

fn cc(folder: &Path, arguments: &[&str]) {
    succeed(Command::new("cc").args(arguments).current_dir(folder)).unwrap();
}

#[test]
fn calls_reach_the_driver_with_their_arguments_or_say_that_there_is_none() {
    if crate::packages::in_path("cc").is_none() || env::consts::ARCH != "x86_64" {
        println!("skipped: needs cc on x86_64");
        return;
    }
    let folder = env::temp_dir().join(format!("warpwire-shim-{}", std::process::id()));
    fs::create_dir_all(folder.join("driver")).unwrap();
    let names = ["cuAbsent", "cuGetErrorName", "cuProbe"].map(str::to_owned).into();
    fs::write(folder.join("shim.c"), SHIM).unwrap();
    fs::write(folder.join("trampolines.s"), assembly::trampolines(&names)).unwrap();
    fs::write(folder.join("driver.c"), DRIVER).unwrap();
    fs::write(folder.join("main.c"), PROGRAM).unwrap();
    fs::write(folder.join("libcuda.so"), SCRIPT).unwrap();
    compile(&folder, &folder.join("libwarpwire_cuda_shim.a")).unwrap();
    cc(&folder, &["-shared", "-fPIC", "driver.c", "-o", "driver/libcuda.so.1"]);
    cc(&folder, &["main.c", "-o", "main", "-L.", "-lcuda"]);

    let run = |libraries: &Path| {
        let output = Command::new(folder.join("main")).env("LD_LIBRARY_PATH", libraries).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    // The stand-in lacks two of the three, as an old driver would.
    assert_eq!(run(&folder.join("driver")), "77 77 500 500 ");
    // The machine that tests may have a driver of its own.
    let without = run(&folder);
    if !Path::new("/usr/lib/x86_64-linux-gnu/libcuda.so.1").exists() {
        assert!(without.starts_with("34 34 34 0 there is no CUDA driver"), "{without}");
    }
    fs::remove_dir_all(&folder).unwrap();
}
