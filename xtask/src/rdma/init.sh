#!/bin/busybox sh
# The first process of the virtual machine: a soft-RoCE adapter, the tests, and the verdict to QEMU.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
exec 2>&1

# The number written to isa-debug-exit's port becomes QEMU's exit status: twice the number, and one.
leave() { printf "\\$(printf %o "$1")" | dd of=/dev/port bs=1 seek=244 count=1 2>/dev/null; poweroff -f; }

for module in $(cat /modules/order); do
    insmod "/modules/$module" || { echo "cannot insert $module"; leave 18; }
done
# A word NAME=VALUE of the kernel's command line.
word() { sed -n "s/.*warpwire\.$1=\([^ ]*\).*/\1/p" /proc/cmdline; }
host=$(word host) hosts=$(word hosts)
ip link set lo up
ip addr add "10.9.0.$((host + 1))/24" dev eth0
ip link set eth0 up
rdma link add rxe0 type rxe netdev eth0 || leave 18
hostname "host$host"
export RUST_BACKTRACE=1 WARPWIRE_RDMA_TEST_LINK=eth0
# One machine plays all ranks of a test; with two, each plays one.
if [ "$hosts" -gt 1 ]; then
    export WARPWIRE_RDMA_TEST_HOST="$host"
    tries=0
    until ping -c 1 -W 1 "10.9.0.$((2 - host))" >/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -lt 60 ] || { echo "the other host does not answer"; leave 18; }
    done
fi
failed=0
while read -r program name arguments; do
    echo "     Running $name ($program)"
    # shellcheck disable=SC2086 # several arguments
    "/tests/$program" $arguments </dev/null || failed=1
done </tests/list
[ "$failed" = 0 ] && leave 16
leave 17
