# Greedy set cover: which inputs of a merge add most edges to what the first corpus, the
# seeds, reaches? Reads the control file of a merge, whose lines `FT` give the features of
# each input, eight to an edge. Prints up to `most` paths, the input that adds most first;
# of two that add as many the shorter, then the one whose name is less.

NR == 1 { files = $1; next }
NR == 2 { seeds = $1; next }
NR <= 2 + files { path[NR - 3] = $0; next }
$1 == "STARTED" { size[$2] = $3 }
$1 == "FT" && $2 < seeds { for (i = 3; i <= NF; i++) reached[int($i / 8)] }
$1 == "FT" && $2 >= seeds {
    for (i = 3; i <= NF; i++) {
        edge = int($i / 8)
        if (edge in reached || ($2, edge) in seen) continue
        seen[$2, edge]
        edges[$2] = edges[$2] " " edge
        inputs[edge] = inputs[edge] " " $2
        adds[$2]++
    }
}

function better(a, b) {
    if (b == "") return 1
    if (adds[a] != adds[b]) return adds[a] > adds[b]
    if (size[a] != size[b]) return size[a] < size[b]
    return path[a] < path[b]
}

# Counts the edges of an input as reached, for all others that have them too.
function take(input, list, count, other, others, e, o) {
    count = split(edges[input], list, " ")
    for (e = 1; e <= count; e++) {
        if (list[e] in reached) continue
        reached[list[e]]
        others = split(inputs[list[e]], other, " ")
        for (o = 1; o <= others; o++) adds[other[o]]--
    }
}

END {
    for (edge in reached) base++
    for (edge in inputs) all++
    while (taken < most) {
        best = ""
        for (i = seeds; i < files; i++) if (adds[i] > 0 && better(i, best)) best = i
        if (best == "") break
        taken++
        added += adds[best]
        print path[best]
        take(best)
    }
    printf "%d inputs add %d of %d edges to the %d of the seeds\n", \
        taken, added, all, base >"/dev/stderr"
}
