# Of a list of programs and their statuses, and then the pages: the statuses of each program that were seen, and those in its page that were not.
FNR == NR { got[$1, $2]; next }
FNR == 1 {
	n = split(FILENAME, part, "[/.]")
	name = part[n - 1]
	section = 0
	told = missing = ""
	for (i = 0; i < 256; i++)
		if ((name, i) in got)
			told = told " " i
	if (told != "")
		line[name] = told
}
/^\.Sh/ { section = /EXIT STATUS/ }
section && /^\.It [0-9]/ {
	gsub(/[^0-9]+/, " ")
	k = split($0, code, " ")
	for (i = 1; i <= k; i++)
		if (!((name, code[i]) in got) && name in line && code[i] != 128)
			lack[name] = lack[name] " " code[i]
}
END {
	for (name in line)
		print name ":" line[name] (name in lack ? "; not seen, though in its page:" lack[name] : "") | "sort"
}
