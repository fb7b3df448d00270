MemcpyHtoD,0x00007f1000000000,16388
kernel-1.traceg
MemcpyHtoD,0x00007f1000100000,68
kernel-2.traceg
