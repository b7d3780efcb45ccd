# Of what gcov -bn says: the lines and branches that were reached, in percent and as reached/all, file by file, the worst first, and in all.
/^File/ {
	split($0, part, "'")
	file = part[2] ~ /^(cmd|lib)\/.*\.c$/ ? part[2] : ""
}
file != "" && /^(Lines executed|Taken at least once):/ {
	n = split($0, part, /[:% ]+/)
	what = /^Lines/ ? "lines" : "branches"
	files[file]
	all[file, what] = part[n]
	got[file, what] = int(part[n - 2] * part[n] / 100 + .5)
	all["", what] += part[n]
	got["", what] += got[file, what]
}
/^(Taken at least once:|No branches)/ { file = "" }	# the last line is of all
function share(f, what) {
	return sprintf("%5.1f%% %12s", all[f, what] ? 100 * got[f, what] / all[f, what] : 100, got[f, what] + 0 "/" all[f, what] + 0)
}
function row(f) { return share(f, "lines") " " share(f, "branches") " " }
END {
	print "lines                branches"
	for (f in files) print row(f) f | "sort -n"
	close("sort -n")
	print row("") "in all"
}
