MemcpyHtoD,0x00007f4000000000,524288
kernel-1.traceg.xz
