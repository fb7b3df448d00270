MemcpyHtoD,0x00007f4000000000,327680
kernel-1.traceg.xz
