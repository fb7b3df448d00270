MemcpyHtoD,0x00007f4000000000,655360
MemcpyHtoD,0x00007f4000140000,8388608
kernel-1.traceg.xz
kernel-2.traceg.xz
kernel-3.traceg.xz
kernel-4.traceg.xz
