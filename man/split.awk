# awk -v command=train -f split.awk batchwise.1.scd: the manual page of one command, from the page of all. Its text is that below COMMANDS, its
# options are those of its own section, of OPTIONS FOR DATA if it reads any, and of COMMON OPTIONS.

# Parts of the source, by section: lines as they are.
/^# / {
    section = substr($0, 3)
    next
}
section == "SYNOPSIS" && index($0, "*batchwise* *" command "*") == 1 {
    sub(/\+\+$/, "")
    synopsis = $0
}
section == "COMMANDS" && /^\*/ { here = $0 == "*" command "*" }
section == "COMMANDS" && here && /^\t/ { text = text (text ? "\n" : "") substr($0, 2) }
section == "OPTIONS FOR DATA" { data = data $0 "\n" }
section == "OPTIONS OF " toupper(command) { own = own $0 "\n" }
section == "COMMON OPTIONS" { common = common $0 "\n" }

END {
    if (synopsis == "" || text == "") {
        print "split.awk: batchwise.1.scd has no command " command > "/dev/stderr"
        exit 1
    }
    # The first sentence, without its full stop, is what the command is for.
    name = text
    gsub(/\n/, " ", name)
    gsub(/[*_]/, "", name)
    sub(/[.:;] .*|\.$/, "", name)
    print "batchwise-" command "(1)\n\n# NAME\n\nbatchwise-" command " - " tolower(substr(name, 1, 1)) substr(name, 2)
    print "\n# SYNOPSIS\n\n" synopsis "\n\n# DESCRIPTION\n\n" text
    print "\n# OPTIONS\n" own
    if (synopsis ~ /--data/) {
        print "# OPTIONS FOR DATA\n" data
    }
    print "# COMMON OPTIONS\n" common
    print "# EXIT STATUS\n\n0 success, 1 failure, 2 wrong usage, 130 interrupted by SIGINT, 143 by SIGTERM.\n"
    print "# SEE ALSO\n\n*batchwise*(1), which has the models' language, memory, ranks, the environment and examples"
}
