MemcpyHtoD,0x00007f4000000000,327680
MemcpyHtoD,0x00007f40000a0000,8388608
kernel-1.traceg.xz
kernel-2.traceg.xz
kernel-3.traceg.xz
kernel-4.traceg.xz
