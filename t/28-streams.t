#!/usr/bin/perl
# Descriptors of every program: whatever is closed, no message ends up in the file; wherever the output ends, its loss is told.
# CUTS=N: so many places where it ends; ALL=1: all command lines and sets of descriptors.
use strict;
use warnings;
BEGIN {
	# A file of output that is as long as a file may be but for k bytes takes k bytes, and no more.
	exec 'sh', '-c', 'ulimit -f 131072; exec "$@"', 'sh', $^X, $0, 'inside' or die if !@ARGV;
	require($0 =~ s{[^/]*$}{programs.pl}r =~ s{^(?!/)}{./}r);
}
our (@PROGS, $dir);
my $LIMIT = 131072 * 512;
my $cuts = $ENV{CUTS} // 1;
my @SETS = $ENV{ALL} ? qw(0 1 2 01 02 12 012) : qw(0 012);
my (%n, $good, $status);

prepare();
my $magic = substr slurp('kept/q.db'), 0, 16;
sub claimed { sql("SELECT count(*) FROM q_job WHERE state = 'claimed'") }
# All that a queue says, but for the lock that a failed run may have had and given back.
sub state_of { sql(join ';', map { "SELECT * FROM $_" } qw(q_job q_body q_key q_attempt q_setting)) }
restore();
my ($before, $held) = (state_of(), claimed());

# What is wrong with the file after a run, in words.
sub faults {
	my ($p) = @_;
	my @wrong;
	for (glob 'q.db* new.db* copy.db*') {
		next if !-f;
		my $bytes = slurp($_);
		push @wrong, "$_: a message is in it" if index($bytes, "$p: ") >= 0 || index($bytes, '"claim":"') >= 0;
		push @wrong, "$_: its header is gone" if /\.db$/ && substr($bytes, 0, 16) ne $magic;
		push @wrong, "$_: something is in it" if /-lock$/ && $bytes ne '';
	}
	return @wrong;
}

for my $p (@PROGS) {
	my %seen;
	for my $line (grep { $ENV{ALL} || !$seen{$_->{needs}}++ } lines_of($p)) {
		my $name = join ' ', map { substr $_, 0, 20 } $p, @{$line->{argv}};
		$name = substr $name, 0, 60;
		my $want = $line->{exit} // 0;
		my @wrong;

		restore();
		$status = run_line($p, $line, sub { into('out') });
		$good = same(slurp('out'));
		my $length = -s 'out';
		is($status, $want, "$name: exit status") or diag(slurp('err'));

		# ---- closed ----
		for my $fds (@SETS) {
			my $lost = $fds =~ /1/ && $good ne '';
			restore();
			$status = run_line($p, $line, sub { into('out'); POSIX::close($_) for split //, $fds });
			my $may = $fds =~ /0/ && defined $line->{in} ? '74' : !$lost ? $want : $line->{passes} ? '(?:74|141)' : '74';
			push @wrong, "without $fds: exit $status, not $may: " . slurp('err') if $status !~ /^$may$/;
			push @wrong, "without $fds: another output" if !$lost && $may eq $want && same(slurp('out')) ne $good && $fds !~ /1/;
			push @wrong, map { "without $fds: $_" } faults($p);
			my $sound = $fds eq '012' && $line->{needs} eq 'write' ? sql('PRAGMA integrity_check') : 'ok';
			push @wrong, "without $fds: $sound" if $sound ne 'ok';
			$n{closed}++;
		}
		ok(!@wrong, '... with descriptors closed') or diag(map { "$_\n" } @wrong);
		next if $good eq '';

		# ---- full after k bytes ----
		@wrong = ();
		my %k = map { int($length * $_ / $cuts) => 1 } 0 .. $cuts - 1;
		$k{$length - 1} = 1;
		for my $k (sort { $a <=> $b } keys %k) {
			restore();
			unlink 'full';
			spew('full', '');
			$status = run_line($p, $line, sub { open STDOUT, '+<', 'full'; sysseek STDOUT, $LIMIT - $k, SEEK_SET });
			my $got = do { open my $f, '<', 'full'; seek $f, $LIMIT - $k, SEEK_SET; local $/; same(<$f> // '') };
			push @wrong, "at $k: exit $status" if $status !~ ($line->{passes} ? qr/^(?:74|141|signal 13)$/ : qr/^74$/);
			push @wrong, "at $k: it was not told: " . slurp('err') if $status eq 74 && slurp('err') !~ /^$p: .*(?:output|written)/m;
			push @wrong, "at $k: not what it should begin with: $got" if $k > 0 && !$line->{passes} && index($good, substr $got, 0, -9) != 0 && length $got > 9;
			push @wrong, "at $k: it was done" if !$line->{stores} && (-s 'q.db-wal' || slurp('q.db') ne slurp('kept/q.db')) && state_of() ne $before;
			push @wrong, "at $k: " . (claimed() - $held) . ' claims for ' . ($got =~ tr/\n//) . ' lines' if $p eq 'qclaim' && claimed() - $held > ($got =~ tr/\n//);
			push @wrong, map { "at $k: $_" } faults($p);
			$n{full}++;
		}
		ok(!@wrong, '... output that ends') or diag(map { "$_\n" } @wrong);

		# ---- a pipe that nobody reads, and one that is read slowly ----
		restore();
		$status = run_line($p, $line, sub { pipe my $r, my $w; close $r; open STDOUT, '>&', $w });
		like($status, qr/^(?:74|141|signal 13)$/, '... a pipe that nobody reads');
		restore();
		pipe my $r, my $w or die;
		fcntl $w, 1031, 4096;		# F_SETPIPE_SZ
		my $pid = fork // die;
		if ($pid == 0) {
			my $got = '';
			close $w;
			while (sysread $r, my $part, 97) { $got .= $part }
			spew('slow', $got);
			POSIX::_exit(0);
		}
		close $r;
		$status = run_line($p, $line, sub { open STDOUT, '>&', $w });
		close $w;
		waitpid $pid, 0;
		is("$status " . same(slurp('slow')), "$want $good", '... a slow reader');
		$n{slow}++;
	}
}
note("$n{closed} runs without a descriptor, $n{full} cuts, $n{slow} slow readers");
done_testing();
