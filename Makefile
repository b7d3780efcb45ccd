# q: GNU make.  To add a program: cmd/NAME.c, man/NAME.1, t/NN-NAME.t and one word here.
PROGS = qinit qadd qclaim qrenew qdone qfail qcancel qreplay qls qwork qjob qlate qset qpause qpoll qrate qlock qonce qcall qbackfill qbackup qcron qhook qcheck qpurge
# Of these, those that speak HTTP: they alone link libcurl, libmicrohttpd and libcrypto, shared, since that costs more than a whole add.
HTTP = qpoll qcall qbackfill qhook

CC ?= cc
CFLAGS ?= -O2 -g
PREFIX = /usr/local
BINDIR = $(DESTDIR)$(PREFIX)/bin
MANDIR = $(DESTDIR)$(PREFIX)/share/man
BASHDIR = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
ZSHDIR = $(DESTDIR)$(PREFIX)/share/zsh/site-functions
# Before the name of each program and page, so that two copies can live together.
PROGPREFIX =
# Tests at a time: some of them wait for the disk.
PARALLEL := $(shell echo $$((1 + $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1))))

WARN = -Wall -Wextra -Wshadow -Wvla -Wmissing-prototypes -Wstrict-prototypes -Wwrite-strings -Wformat=2
LIBS_CFLAGS := $(shell pkg-config --cflags sqlite3 jansson 2>/dev/null)
LIBS := $(or $(shell pkg-config --libs sqlite3 jansson 2>/dev/null),-lsqlite3 -ljansson)
HTTP_LIBS := $(or $(shell pkg-config --libs libcurl libmicrohttpd libcrypto 2>/dev/null),-lcurl -lmicrohttpd -lcrypto)
FLAGS = -std=c11 -D_XOPEN_SOURCE=700 -Ilib $(WARN) $(LIBS_CFLAGS) $(CPPFLAGS) $(CFLAGS)

# Static programs start in half the time, so they are built where the archives are; SHARED=1 says no.
archive = $(filter /%,$(shell $(CC) -print-file-name=lib$(1).a))
ifndef SHARED
ifneq ($(and $(call archive,c),$(call archive,sqlite3),$(call archive,jansson)),)
STATIC = -static
endif
endif
LINK = $(CC) $(CFLAGS) -Wl,--as-needed $(LDFLAGS)

BIN = $(PROGS:%=cmd/%)
UNIT = $(patsubst %.c,%,$(wildcard t/unit-*.c t/serve.c t/storm/*.c t/fuzz/*.c t/crash/crash.c t/fault/fault.c))
MAN = $(wildcard man/*.[157])
C = $(wildcard cmd/*.c lib/*.c t/*.c t/*/*.c)
LIB = $(filter-out lib/static.o lib/schema.o,$(patsubst %.c,%.o,$(wildcard lib/*.c))) lib/schema.o
SAN = -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

all: $(BIN)

# qinit looks groups up, HTTP looks hosts up, for which the C library loads plug-ins: of archives they take only SQLite's.
NET = $(HTTP:%=cmd/%) t/unit-http t/unit-source t/unit-hook t/serve t/fuzz/fuzz t/fault/fault
DYNAMIC = cmd/qinit $(NET)
ifdef STATIC
LIBS += -lpthread -lm
$(filter-out $(DYNAMIC),$(BIN) $(UNIT)): LINK += -static -Wl,--wrap=dlopen,--wrap=getgrnam
$(filter-out $(DYNAMIC),$(BIN) $(UNIT)): lib/static.o
$(DYNAMIC): LIBS := $(call archive,sqlite3) $(LIBS)
endif
$(NET): LIBS += $(HTTP_LIBS)

$(BIN) $(UNIT): %: %.o lib/libq.a
	$(LINK) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS)

# The power cuts run the programs themselves: their main() under another name.
CRASH = qinit qadd qclaim qrenew qdone qfail qcancel qreplay qset qpurge qonce qcron qbackup
t/crash/crash: t/crash/record.o $(CRASH:%=t/crash/%.o)
t/crash/crash: LINK += $(patsubst %,-Wl$(comma)--wrap=%,unlink link renameat2 fsync ftruncate)
$(CRASH:%=t/crash/%.o): t/crash/%.o: cmd/%.o
	objcopy --redefine-sym main=$*_main $< $@
# Calls that fail: likewise, all of them.
t/fault/fault: t/fault/inject.o $(PROGS:%=t/fault/%.o)
t/fault/fault: LINK += -rdynamic
$(PROGS:%=t/fault/%.o): t/fault/%.o: cmd/%.o
	objcopy --redefine-sym main=$*_main $< $@
comma = ,
space = $(subst ,, )

lib/libq.a: $(LIB)
	rm -f $@ && $(AR) rc $@ $^
%.o: %.c .flags
	$(CC) $(FLAGS) $(if $(WERROR),-Werror) -MMD -MP -c -o $@ $<
-include $(wildcard cmd/*.d lib/*.d t/*.d t/*/*.d)
SQL = schema outbox poll hook cron once purge late
lib/schema.c: $(SQL:%=lib/%.sql) Makefile
	for f in $(SQL); do echo "const char db_$$f[] ="; \
	sed 's/["\\]/\\&/g; s/.*/"&\\n"/' lib/$$f.sql; echo ';'; done >$@

# Holds the flags of the last build, so that other flags build everything again; expanded here, since a target has flags of its own.
BUILT := $(FLAGS) $(LINK) $(STATIC) $(LIBS)
.flags: FORCE
	@echo '$(BUILT)' >$@.new; cmp -s $@.new $@ && rm $@.new || mv $@.new $@

TESTS = t/*.t
PROVE = prove
check: all $(UNIT)
	PATH="$(CURDIR)/cmd:$$PATH" LC_ALL=C $(PROVE) -j$(PARALLEL) $(TESTS)

# These three in a copy, which leaves this build alone; of TESTS, if not all.  Programs leave their memory to exit, on purpose.
asan:
	rm -rf .asan && mkdir .asan && cp -R * .ci .asan
	ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1:abort_on_error=1 \
	$(MAKE) -C .asan check SHARED=1 CFLAGS='-O1 -g $(SAN)'
# A program that is killed tells nothing, and neither does one that may not write here: what is reached only so counts as not reached.
cover:
	rm -rf .cover && mkdir .cover && cp -R * .ci .cover && install -d -m 1777 .cover/.reached
	install -m 0666 /dev/null .cover/seen
	$(CC) -c -DSEEN='"$(CURDIR)/.cover/seen"' -o .cover/t/cover.o t/cover.c
	-$(MAKE) -C .cover check PROVE='prove -e t/cover' INJECTIONS=3000 CFLAGS='-O0 -g --coverage' LDFLAGS='-Wl,--wrap=_exit,--wrap=execvp t/cover.o'
	cd .cover && t/cover
# Shared, since it finds malloc(3) by its symbol.
valgrind:
	rm -rf .valgrind && mkdir .valgrind && cp -R * .ci .valgrind
	$(MAKE) -C .valgrind all t/serve SHARED=1 CFLAGS='-O1 -g'
	cd .valgrind && PATH="$$PWD/cmd:$$PATH" LC_ALL=C prove t/valgrind

lint: lib/schema.c
	@for tool in gcc clang cppcheck shellcheck mandoc sqlite3; do command -v $$tool >/dev/null || \
	{ echo "lint: $$tool is not installed; scripts/check installs what is missing" >&2; exit 1; }; done
	gcc $(FLAGS) -Werror -fsyntax-only $(C)
	clang $(FLAGS) -Werror -fsyntax-only $(C)
	cppcheck -q --error-exitcode=1 --enable=warning,portability --suppress=memleakOnRealloc --std=c11 \
	-Ilib '-D_Noreturn=__attribute__((noreturn))' '-Djson_object_foreach(o,k,v)=for(;;)' '-Djson_array_foreach(a,i,v)=for(;;)' $(C)
	shellcheck .ci/run $$(find scripts -type f ! -path scripts/systemd/\* ! -path scripts/debian/\* ! -name zsh) t/lib.sh
	shellcheck -x t/bench/run
	find t -type f -exec awk 'FNR == 1 && /^#!.*sh/ { print FILENAME }' {} + | xargs -n 8 -P $(PARALLEL) shellcheck -S error
	mandoc -T lint -W warning $(MAN)
	cat $(SQL:%=lib/%.sql) | sqlite3 -bail :memory:

bench: all t/serve
	PATH="$(CURDIR)/cmd:$$PATH" t/bench/run
# The same, kept under .bench with date and versions.
bench-save: all t/serve
	mkdir -p .bench
	PATH="$(CURDIR)/cmd:$$PATH" t/bench/run | tee .bench/$$(date -u +%Y-%m-%dT%H%M).txt
storm: all $(UNIT)
	PATH="$(CURDIR)/cmd:$$PATH" t/storm/run
# Sixteen processes over one file for HOURS (or SECONDS_), RATE jobs a second, SEED: nothing may grow.
soak: all t/serve
	t/storm/soak
# With libFuzzer where clang has it, else by t/fuzz/fuzz alone, and damaged files.  RUNS, MUTANTS, SEED, and FUZZ: some targets alone.
fuzz: all t/fuzz/fuzz t/fuzz/mutants
	mkdir -p .fuzz && rm -f .fuzz/libfuzzer
	clang $(FLAGS) -O1 -DFUZZ $(SAN) -fsanitize=fuzzer -o .fuzz/libfuzzer t/fuzz/fuzz.c $(patsubst %.o,%.c,$(filter-out lib/http.o,$(LIB))) \
	-lsqlite3 -ljansson -lpthread -lm $(HTTP_LIBS) || echo 'fuzz: no libFuzzer here'
	t/fuzz/run $(FUZZ)
	$(if $(FUZZ),,t/fuzz/mutate)
crash: t/crash/crash
	t/crash/run
fault: all t/fault/fault t/serve
	t/fault/run

model:
	t/model/run

# All pages, with links between them: those to pages of others, which mandoc gives as "#", are taken out again.
html:
	rm -rf .html && mkdir .html
	cd man && for f in $(MAN:man/%=%); do mandoc -T html -O 'toc,man=%N.%S.html;#' $$f >../.html/$$f.html || exit; done
	sed -i 's|<a class="Xr" href="#">\([^<]*\)</a>|\1|g' .html/*
	cd man && awk 'BEGIN { print "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\"><title>q</title><h1>q</h1><dl>" } \
	/^\.Nd / { sub(/^\.Nd /, ""); name = substr(FILENAME, 1, length(FILENAME) - 2); \
	print "<dt><a href=\"" FILENAME ".html\">" name "(" substr(FILENAME, length(name) + 2) ")</a><dd>" $$0 } \
	END { print "</dl></html>" }' $(notdir $(filter %.7,$(MAN)) $(filter %.1,$(MAN)) $(filter %.5,$(MAN))) >../.html/index.html

# Where each page goes; with a PROGPREFIX pages refer to each other by it, too.
PAGES = $(foreach p,$(MAN:man/%=%),$(MANDIR)/man$(subst .,,$(suffix $(p)))/$(PROGPREFIX)$(p))
NAMED = $(PROGS:%=$(PROGPREFIX)%)
PREFIXED = sed -i -E 's/(^|[^A-Za-z0-9_.\/-])($(subst $(space),|,$(PROGS)))(\.? |[^A-Za-z0-9_.-]|$$)/\1$(PROGPREFIX)\2\3/g; s/((Xr|Nm) )q(-[a-z]+)?( |$$)/\1$(PROGPREFIX)q\3\4/'
install: all
	install -d $(BINDIR) $(MANDIR)/man1 $(MANDIR)/man5 $(MANDIR)/man7 $(BASHDIR) $(ZSHDIR)
	for p in $(PROGS); do install -m 0755 cmd/$$p $(BINDIR)/$(PROGPREFIX)$$p || exit; done
	for p in $(PAGES); do install -m 0644 man/$${p##*/$(PROGPREFIX)} $$p || exit; done
	$(if $(PROGPREFIX),$(PREFIXED) $(PAGES); $(PREFIXED) $(PAGES))
	rm -f $(NAMED:%=$(BASHDIR)/%) $(ZSHDIR)/_$(PROGPREFIX)q
	{ cd scripts/completion && cat common bash && echo 'complete -F _q_bash $(NAMED)'; } >$(BASHDIR)/$(firstword $(NAMED))
	{ cd scripts/completion && echo '#compdef $(NAMED)' && cat common zsh; } >$(ZSHDIR)/_$(PROGPREFIX)q
	chmod 0644 $(BASHDIR)/$(firstword $(NAMED)) $(ZSHDIR)/_$(PROGPREFIX)q
	for p in $(wordlist 2,99,$(NAMED)); do ln -s $(firstword $(NAMED)) $(BASHDIR)/$$p || exit; done
# Folders that are empty then, and seldom anybody else's, go, too.
uninstall:
	rm -f $(NAMED:%=$(BINDIR)/%) $(PAGES) $(NAMED:%=$(BASHDIR)/%) $(ZSHDIR)/_$(PROGPREFIX)q
	for d in $(MANDIR)/man[157] $(BASHDIR) $(dir $(BASHDIR)) $(ZSHDIR) $(dir $(ZSHDIR)); do rmdir $$d 2>/dev/null || :; done

# What is committed, or without git what is there, but for what make made; the same bytes each time.
VERSION = $(shell sed -n 's/^\#define Q_VERSION "\(.*\)"/\1/p' lib/q.h)
DIST = .dist/q-$(VERSION)
dist:
	rm -rf .dist && mkdir -p $(DIST)
	if [ -e .git ]; then git archive HEAD; else tar -c -f - * .ci .gitignore; fi >.dist/tar && tar -x -C $(DIST) -f .dist/tar
	$(MAKE) -s -C $(DIST) clean
	tar -c --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime=$(CURDIR)/$(DIST)/lib/q.h -C .dist -f - q-$(VERSION) | gzip -9n >$(DIST).tar.gz
	rm -rf $(DIST) .dist/tar
	@echo $(DIST).tar.gz
# Debian packages of that tarball; who they are from is told by DEBFULLNAME and DEBEMAIL.
WHO = $${DEBFULLNAME:-q} <$${DEBEMAIL:-q@localhost}>
deb: dist
	rm -rf .deb && mkdir .deb && tar -x -C .deb -f $(DIST).tar.gz
	cd .deb/q-$(VERSION) && cp -R scripts/debian . && cp LICENSE debian/copyright && \
	sed -i "s/@VERSION@/$(VERSION)/; s/@WHO@/$(WHO)/; s/@DATE@/$$(LC_ALL=C date -u -r lib/q.h '+%a, %d %b %Y %T +0000')/" debian/changelog debian/control && \
	dpkg-buildpackage -us -uc -b
	@echo .deb/*.deb
# Tarball and packages, tried: minutes.  ROOT: a bare root, instead of one that debootstrap makes.
package:
	LC_ALL=C prove t/package/*.t

clean:
	rm -rf $(BIN) $(UNIT) cmd/*.[od] lib/*.[oda] t/*.[od] t/*/*.[od] lib/schema.c .flags .flags.new .asan .cover .valgrind .fuzz .html .lint .dist .deb

.PHONY: all check asan cover valgrind lint bench bench-save storm soak fuzz crash fault model html install uninstall dist deb package clean FORCE
.DELETE_ON_ERROR:
