#!/usr/bin/perl
# make deb: what the packages hold and need, what lintian says, and, as root with debootstrap, their life in a bare Debian.
# ROOT=FOLDER: a bare root that is there already; it is used, and left as it was.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use Test::More;

my $top = abs_path(dirname($0) . '/../..');
my $dir = tempdir('q-test.XXXXXX', TMPDIR => 1, CLEANUP => 1);
delete $ENV{$_} for grep { /^Q_/ } keys %ENV;
@ENV{qw(LC_ALL DEBEMAIL)} = ('C.UTF-8', 'q@example.org');
sub got { my ($command) = @_; my $out = `$command`; chomp $out; $out }
sub installed { my ($program) = @_; !system "command -v $program >/dev/null" }

plan skip_all => 'dpkg-dev and debhelper are not installed' if !installed('dpkg-buildpackage') || !installed('dh');
is(system("make -s -C '$top' deb >'$dir/log' 2>&1"), 0, 'make deb') or do { diag(`tail -n 20 '$dir/log'`); done_testing; exit };
my ($core) = glob "$top/.deb/q-jobs_*.deb";
my ($http) = glob "$top/.deb/q-jobs-http_*.deb";
my $make = got("cat '$top/Makefile'");
my @progs = sort split ' ', ($make =~ /^PROGS = (.*)$/m)[0];
my @http = sort split ' ', ($make =~ /^HTTP = (.*)$/m)[0];
my %http = map { $_ => 1 } @http;

# ---- what is where ----

for ([$core, 'core', grep { !$http{$_} } @progs], [$http, 'http', @http]) {
	my ($deb, $name, @its) = @$_;
	my @files = sort split /\n/, got("dpkg-deb --fsys-tarfile '$deb' | tar -t");
	my $its = sub { my ($like) = @_; join ' ', sort map { m{$like} ? $1 : () } @files };
	is($its->('/bin/([^/]+)$'), "@its", "$name: its programs");
	is($its->('/man1/([^/]+)[.]1[.]gz$'), "@its", '... their pages');
	is($its->('/completions/([^/]+)$'), "@its", '... their completions');
	is(join(' ', grep { !m{^\./(?:$|usr/(?:$|bin/|share/(?:$|man/|doc/|bash-completion/|zsh/)))} } @files), '', '... and nothing elsewhere');
	is($its->('/man[57]/(.*)[.]gz$'), join(' ', sort map { s/.*\///r } grep { ($http{s/.*\/|\..*//gr} // 0) == ($name eq 'http') } glob "$top/man/*.[57]"), '... other pages');
	my $depends = got("dpkg-deb -f '$deb' Depends");
	mkdir "$dir/$name";
	system('dpkg-deb', '-x', $deb, "$dir/$name");
	my $needs = got("objdump -p '$dir/$name'/usr/bin/* | sed -n 's/^  NEEDED *//p' | sort -u");
	if ($name eq 'core') {
		unlike("$depends\n$needs", qr/curl|microhttpd|ssl|crypto/, '... no library of HTTP is needed');
		is(join(' ', sort map { s/\.so.*//r } split ' ', $needs), 'libc libjansson libsqlite3', '... but these, shared');
	} else {
		like($depends, qr/\blibcurl4\b.*\blibmicrohttpd12\b/, '... its libraries');
	}
}
is(got("grep -rl /usr/local/bin/q '$dir/core/usr/share/doc/q-jobs/examples/systemd'"), '', 'units name programs where they are');

# ---- lintian ----

# Of what its defaults show, nothing; hardening-no-bindnow is below that: each start would pay for it.
SKIP: {
	skip 'lintian is not installed', 1 if !installed('lintian');
	is(got("lintian --allow-root '$top'/.deb/*.changes 2>&1"), '', 'lintian has no complaint');
}

# ---- a bare root ----

SKIP: {
	skip 'only root can, with debootstrap', 1 if $> != 0 || !installed('debootstrap');
	my $root = $ENV{ROOT};
	if (!defined $root) {
		$root = "$dir/root";
		system("debootstrap --variant=minbase bookworm '$root' >'$dir/log' 2>&1") == 0 or skip 'debootstrap failed: no network?', 1;
	}
	my $in = sub { my ($script) = @_; open my $f, '>', "$root/tmp/script" or die; print $f $script; close $f; system("chroot '$root' sh -eu /tmp/script >'$dir/log' 2>&1") };
	my $apt = 'DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends';
	is($in->("apt-get -q update; $apt install jq; id ana || useradd -m ana; rm -rf /home/ana/.local"), 0, 'a bare root, jq, and a user') or diag(`tail '$dir/log'`);
	my $list = sub { got("cd '$root' && find . -xdev \\( -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o -path ./var/log -o -path ./var/cache -o -path ./var/lib/apt -o -path './var/lib/dpkg/*-old' \\) -prune -o -print | sort") };
	my $before = $list->();
	system('cp', $core, $http, "$root/tmp") == 0 or die;
	is($in->("$apt install /tmp/q-jobs_*.deb"), 0, 'the core is installed') or diag(`tail '$dir/log'`);
	is(got("chroot '$root' dpkg-query -W -f '\${Package}\\n' | grep -c 'curl\\|microhttpd'"), '0', '... and brings no library of HTTP');
	my ($minute) = got("cat '$top/README'") =~ /^```console\n(.*?)^```$/ms;
	(my $commands = $minute) =~ s/^(?!\$ ).*\n//mg;
	open my $f, '>', "$root/tmp/minute" or die;
	print $f "set -eu\ncd\nexport COLUMNS=80 Q_NOW=2026-06-02T12:00:00Z\n", $commands =~ s/^\$ (.*)\n/$1\n/mgr;
	close $f;
	# On a terminal, as for the reader, and with /proc, whose boot id the programs read.
	open $f, '>', "$dir/enter" or die;
	print $f "mount -t proc proc '$root/proc' && exec chroot '$root' su ana -c 'bash /tmp/minute'\n";
	close $f;
	system("script -qec 'unshare -m sh $dir/enter' /dev/null >'$dir/log' 2>&1 </dev/null");
	(my $out = got("cat '$dir/log'")) =~ s/\r//g;
	my $like = join '.*', map { quotemeta } split /\.\.\./, $minute =~ s/^\$ .*\n//mgr =~ s/ +/ /gr, -1;
	like("$out\n" =~ s/ +/ /gr, qr/^$like\z/, 'what the README begins with');
	is($in->("$apt install /tmp/q-jobs-http_*.deb; qpoll --version; qhook --version; apt-get check"), 0, 'http is installed') or diag(`tail '$dir/log'`);
	is($in->("rm -rf ~ana/.local; $apt purge q-jobs q-jobs-http; $apt autoremove --purge"), 0, 'all is purged') or diag(`tail '$dir/log'`);
	is($list->(), $before, '... without a trace');
	unlink glob "$root/tmp/q-jobs* $root/tmp/script $root/tmp/minute";
}
done_testing;
