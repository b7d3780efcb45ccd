#!/usr/bin/perl
# Families that stay behind: they fork, leave the group and the session, ignore TERM and hold pipes.  Whoever runs a command ends
# them all at its time limit, or when it is told to end itself; no descriptor is left.  LIMITS=N SEED=N
use strict;
use warnings;
BEGIN { require($0 =~ s{[^/]*$}{programs.pl}r =~ s{^(?!/)}{./}r) }
our (@PROGS, $dir);
my $limits = $ENV{LIMITS} // 12;
my $seed = $ENV{SEED} // time;
srand $seed;
note("SEED=$seed");
-d '/proc/self/fd' or plan(skip_all => 'no /proc');
delete @ENV{qw(Q_NOW Q_BOOT)};
output('qinit');
output('qset', 'rate.r=1000000/s+1000000', 'rate.r.concurrency=50');

# A family: what each of its members does, as letters.  All of them know its name from their environment.
spew('family', <<'END');
use POSIX ();
my ($shape) = @ARGV;
$| = 1;
sub live { my ($how) = @_;
	$SIG{$_} = 'IGNORE' for $how =~ /i/ ? qw(TERM HUP INT QUIT) : ();
	POSIX::setsid() if $how =~ /s/;
	setpgrp if $how =~ /g/;
	do { close STDIN; close STDOUT; close STDERR } if $how =~ /c/;
	if ($how =~ /d/) { POSIX::_exit(0) if fork }		# an orphan
	if ($how =~ /f/) { for (1 .. 2) { last if !fork } }	# more of them
	if ($how =~ /w/) { print 'x' x 65536 for 1 .. 3 }	# a pipe that is full, or read
	open my $f, '>>', "there.$ENV{TREE}";
	print $f "x\n";
	close $f;
	sleep 1 while 1;
}
my @members = split /,/, $shape;
my $head = shift @members;
for my $how (@members) { live($how) if !fork }
# The head goes on when they are all there.
my $all = 0;
$all += /f/ ? 3 : 1 for @members;
until (do { open my $f, '<', "there.$ENV{TREE}"; my @n = <$f>; @n >= $all }) { select undef, undef, undef, 0.005 }
open my $go, '>', "go.$ENV{TREE}"; print $go $$; close $go;
exit 0 if $head =~ /e/;
live($head =~ s/f//r);
END

# Who has TREE=NAME in its environment; the dead have none.
sub members {
	my ($name) = @_;
	my @found;
	for (glob '/proc/[0-9]*/environ') {
		my ($pid) = m{/(\d+)/};
		push @found, $pid if $pid != $$ && index("\0" . slurp($_), "\0TREE=$name\0") >= 0;
	}
	return @found;
}
# Its descriptors, but for those of a second connection, which checkpoints and is opened when that is first due.
sub fds {
	my %n;
	$n{readlink($_) // ''}++ for glob "/proc/$_[0]/fd/*";
	for (grep { m{/q\.db(?:-wal)?$} } keys %n) { $n{$_} = 1 if $n{$_} == 2 }
	my $n = 0;
	$n += $_ for values %n;
	return $n;
}

# How each runs a command; those with a time limit of their own meet it, the others are told to end.
my %runs = (
	qwork => sub { output('qadd', '-q', 'q', 'x'); ('qwork', '--limit', $_[0], '-c', 1, 'q', '--') },
	qjob => sub { ('qjob', '--limit', $_[0], "job$_[1]", '--') },
	qonce => sub { ('qonce', "key$_[1]", '--') },
	qlock => sub { ('qlock', "lock$_[1]", '--') },
	qrate => sub { ('qrate', 'r', '--') },
	qpoll => undef, qbackfill => sub { ('qbackfill', '--name', "b$_[1]", '--from', 1, '--to', 2, '--step', 1, '--') },
);
# A program whose usage has a command in it has a row above; qpoll's runs as qbackfill's does (t/77-qpoll-bad.t).
for my $p (@PROGS) {
	ok(exists $runs{$p}, "$p runs a command") if output($p, '--help') =~ /^(?:usage:)? .*-- CMD/m;
}
my @ways = grep { $runs{$_} } sort keys %runs;
my @shapes = ('', 'i', 's', 'g', 'si', 'gi', 'sid', 'gid', 'cs', 'sic', 'f', 'fi', 'sfi', 'fd', 'w', 'wi', 'ws');
my (%n, @wrong);

sub begin {	# NAME COMMAND...: a pid
	my ($name, @cmd) = @_;
	my $pid = fork // die;
	if ($pid == 0) {
		$ENV{TREE} = $name;
		open STDIN, '<', '/dev/null';
		open STDOUT, '>', 'out';
		open STDERR, '>', 'err';
		exec @cmd or POSIX::_exit(127);
	}
	return $pid;
}

# A worker that stays: its own descriptors are counted before and after.
my $follow = begin('follow', 'qwork', '--follow', '--limit', '20ms', 'f', '--', 'sh', '-c', 'sleep 9 & sleep 9');
sub settled { sql("SELECT count(*) FROM q_attempt WHERE queue = 'f'") }
sub one { my $was = settled(); output('qadd', '-q', '--attempts', 1, 'f', 'x'); until_ok(sub { settled() > $was }) or die 'it does not follow' }
one() for 1 .. 4;
my ($minder) = map { my ($pid) = m{/(\d+)/}; slurp($_) =~ /^PPid:\s*$follow$/m ? $pid : () } glob '/proc/[0-9]*/status';
my $had = '';
until_ok(sub { my $now = fds($follow) . ' ' . fds($minder); my $was = $had; $had = $now; $was eq $now });

for my $i (1 .. $limits) {
	my $p = $ways[$i % @ways];
	my $shape = join ',', map({ $shapes[rand @shapes] } 0 .. 1 + rand 3);
	my $name = "t$$-$i";
	my $own = $p eq 'qwork' || $p eq 'qjob';
	$shape =~ s/^[^,]*/i/ if $i % 5 == 0;
	$shape =~ s/^[^,]*/e/ if $i % 7 == 0;		# ends well, and leaves the others
	my $pid = begin($name, $runs{$p}->($own ? '300ms' : 0, $i), $^X, 'family', $shape);
	if (!$own) {
		until_ok(sub { -s "go.$name" || waitpid($pid, POSIX::WNOHANG) == $pid });
		kill TERM => $pid;
		select undef, undef, undef, 0.02;
		kill TERM => $pid;		# the second one does not wait
	}
	waitpid $pid, 0;
	my @left = members($name);
	push @wrong, "$i: $p $shape: left: " . join ' ', map { my $s = slurp("/proc/$_/status"); ($s =~ /^(State:.*)/m)[0] } @left if @left;
	kill KILL => @left;
	$n{$p}++;
	unlink "go.$name", "there.$name";
	one() if $i % 8 == 0;
}
is(join("\n", @wrong), '', "$limits families, none is left (" . join(', ', map { "$_ $n{$_}" } sort keys %n) . ')');
until_ok(sub { fds($follow) . ' ' . fds($minder) eq $had });
is(fds($follow) . ' ' . fds($minder), $had, '... nor a descriptor of a worker that stays');
kill TERM => $follow;
waitpid $follow, 0;
is(scalar(members('follow')), 0, '... nor anything of its own');

# The control: who kills the process that it has started, and no more.
my $control = "t$$-control";
my $pid = begin($control, $^X, 'family', 'i,si,g,d');
until_ok(sub { -s "go.$control" });
kill KILL => $pid;
waitpid $pid, 0;
my @left = members($control);
cmp_ok(scalar @left, '>=', 3, 'control: killing by pid leaves ' . @left . ' of them');
kill KILL => @left;
done_testing();
