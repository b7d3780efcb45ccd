#!/usr/bin/perl
# The programs against a model of a queue that is simple enough to be seen right: random commands, clocks
# that jump, and after them the same jobs in the same order, to the byte.  SEED=N repeats a run, OPS=N sets its length.
use strict;
use warnings;
use Cwd 'abs_path';
use File::Basename 'dirname';
use File::Temp 'tempdir';
use Storable 'dclone';
use Test::More;

my $seed = $ENV{SEED} // int(time * 1000 + $$) % 1_000_000_000;
my $ops = $ENV{OPS} // 300;
$ENV{PATH} = abs_path(dirname(__FILE__)) . "/../cmd:$ENV{PATH}";
delete @ENV{grep /^Q_/, keys %ENV};
@ENV{'LC_ALL', 'TZ'} = ('C', 'UTC');
chdir(my $dir = tempdir('q-test.XXXXXX', TMPDIR => 1, CLEANUP => 1)) or die;
$ENV{Q_DB} = "$dir/q.db";
END { chdir '/' }
diag("SEED=$seed OPS=$ops") if $ENV{SEED};
note("SEED=$seed OPS=$ops");
srand $seed;

# ---- the model ----

my ($now, $boot, $bootid, $known_boot) = (1780401600000, 1_000_000, 1, '');
my @jobs;		# by id; each a hash
my %keys;		# "queue key" => job
my @ledger;
my $LOST = 'the lease ended before the job was settled';

sub open_job { $_[0]{state} eq 'pending' || $_[0]{state} eq 'failed' }
sub unfinished { open_job($_[0]) || $_[0]{state} eq 'claimed' }

# The one job of an entity that may run: who runs already, else the first event.
sub head {
	my ($j) = @_;
	return $j if !defined $j->{entity};
	my @of = grep { defined $_ && defined $_->{entity} && $_->{entity} eq $j->{entity} && $_->{queue} eq $j->{queue} && unfinished($_) } @jobs;
	my ($runs) = grep { $_->{state} eq 'claimed' } @of;
	return $runs // (sort { $a->{event} <=> $b->{event} || $a->{id} <=> $b->{id} } @of)[0];
}
sub ready { open_job($_[0]) && head($_[0]) == $_[0] }

sub add {		# id, or nothing if refused
	my ($n, $dup) = @_;
	my $held = defined $n->{key} ? $keys{"$n->{queue} $n->{key}"} : undef;
	if (defined $held) {
		my $j = $jobs[$held];
		return if $dup eq '--strict' && $j->{payload} ne $n->{payload};
		return $held if $dup ne '--replace';
		if (open_job($j)) {
			@$j{'payload', 'due', 'event'} = @$n{'payload', 'due', 'event'};
			$j->{until} = $n->{due} + $j->{window} if defined $j->{window};
			return $held;
		}
	}
	my $id = @jobs || 1;
	$jobs[$id] = { %$n, id => $id, state => 'pending', generation => 1, fence => 0, spent => 0, lost => 0, added => $now, word => '',
	    until => defined $n->{window} ? $n->{due} + $n->{window} : undef };
	$keys{"$n->{queue} $n->{key}"} = $id if defined $n->{key};
	return $id;
}

sub fails {		# one attempt less
	my ($j, $outcome, $due, $dead, $reason) = @_;
	my $old = $j->{due};
	$j->{spent}++;
	$j->{lost} = $outcome eq 'lost' ? $j->{lost} + 1 : 0;
	$j->{from} = undef;
	$j->{due} = $due if $outcome ne 'lost';
	my $next = $j->{due} > $now ? $j->{due} : $now;
	$dead ||= $j->{spent} >= $j->{attempts} || $j->{lost} >= 3 || defined $j->{until} && $next > $j->{until};
	$j->{due} = $old if $dead;
	return settled($j, $outcome, $dead ? 'dead' : 'failed', $reason, $old);
}

sub settled {
	my ($j, $outcome, $state, $reason, $due, $count, $result) = @_;
	$j->{state} = $state;
	$j->{finished} = $state eq 'done' || $state eq 'dead' ? $now : undef;
	$j->{last} = { at => $now, outcome => $outcome, reason => $reason, count => $count, result => $result };
	push @ledger, join '|', map { $_ // '' } $j->{id}, $j->{generation}, $j->{spent} + ($outcome eq 'failed' || $outcome eq 'lost' ? 0 : 1), $j->{fence},
	    $due, $j->{claimed}, $now, $outcome, $state, $count, $reason, $result;
	return 0;
}

sub see_boot {		# a boot that is new to the file ends all leases
	return if $known_boot eq $bootid;
	$_->{lease} = 0 for grep { defined && $_->{state} eq 'claimed' } @jobs;
	$known_boot = $bootid;
}

sub claim {
	my ($queues, $n, $lease, $type) = @_;
	my %seen;
	my @queues = grep { !$seen{$_}++ } @$queues;
	see_boot();
	for my $q (@queues) {
		for (sort { $a->{lease} <=> $b->{lease} || $a->{id} <=> $b->{id} }
		    grep { defined && $_->{queue} eq $q && $_->{state} eq 'claimed' && $_->{lease} <= $boot } @jobs) {
			$_->{word} = '';
			fails($_, 'lost', undef, 0, $LOST);
		}
	}
	my @due = sort { $a->{priority} <=> $b->{priority} || $a->{due} <=> $b->{due} || $a->{id} <=> $b->{id} }
	    grep { defined && $seen{$_->{queue}} && $_->{due} <= $now && ready($_) && (!defined $type || ($_->{type} // '') eq $type) } @jobs;
	splice @due, $n if @due > $n;
	for (@due) {
		$_->{state} = 'claimed';
		$_->{fence}++;
		$_->{lease} = $boot + $lease;
		$_->{claimed} = $now;
	}
	return @due;
}

sub settle {		# 0, or 76
	my ($word, $how, %o) = @_;
	my ($j) = grep { defined && $_->{word} eq $word } @jobs;
	return 76 if !defined $j;
	my %outcome = (done => 'done', in => 'failed', dead => 'failed', defer => 'deferred', release => 'released');
	if ($j->{state} ne 'claimed') {
		return $how ne 'renew' && $j->{last}{outcome} eq $outcome{$how} && !($how eq 'dead' && $j->{state} eq 'failed') ? 0 : 76;
	}
	if ($how eq 'renew') {
		$j->{lease} = $boot + $o{ms};
		return 0;
	}
	if ($how eq 'done') {
		$j->{lost} = 0;
		$j->{from} = undef;
		return settled($j, 'done', 'done', undef, $j->{due}, $o{count}, $o{result});
	}
	return fails($j, 'failed', $now + ($o{ms} // 0), $how eq 'dead', $o{reason}) if $how ne 'defer' && $how ne 'release';
	return settled($j, 'released', 'pending', $o{reason}, $j->{due}) if $how eq 'release';
	if (defined $j->{from} && $now - $j->{from} > 86_400_000) {
		return fails($j, 'failed', $now + $o{ms}, 0, $o{reason} // 'deferred for more than 24h');
	}
	$j->{lost} = 0;
	$j->{from} = ($j->{from} // $now) + $o{ms};
	my $old = $j->{due};
	$j->{due} = $now + $o{ms};
	return settled($j, 'deferred', 'pending', $o{reason}, $old);
}

sub cancel {		# 0 and its id, 0 alone: it was so already, or why not
	my ($id) = @_;
	my $j = $jobs[$id];
	return 66 if !defined $j;
	return 0 if $j->{state} eq 'cancelled';
	return 1 if !open_job($j) && $j->{state} ne 'dead';
	@$j{'state', 'finished'} = ('cancelled', $now);
	return (0, $id);
}

sub replay {
	my ($id) = @_;
	my $j = $jobs[$id];
	return 66 if !defined $j;
	return 1 if unfinished($j) || defined $j->{key} && $keys{"$j->{queue} $j->{key}"} != $id;
	@$j{'state', 'word', 'due', 'from', 'finished'} = ('pending', '', $now, undef, undef);
	$j->{generation}++;
	$j->{spent} = $j->{lost} = 0;
	$j->{until} = defined $j->{window} ? $now + $j->{window} : undef;
	return (0, $id);
}

# ---- how the programs would show it ----

sub iso {
	my ($ms, $digits) = @_;
	my @t = gmtime int($ms / 1000);
	return sprintf '%04d-%02d-%02dT%02d:%02d:%02d%sZ', $t[5] + 1900, $t[4] + 1, @t[3, 2, 1, 0], $digits ? sprintf('.%03d', $ms % 1000) : '';
}
sub text { defined $_[0] ? qq("$_[0]") : 'null' }
sub moment { my ($name, $ms) = @_; defined $ms ? qq("${name}_at":") . iso($ms) . qq(","${name}_ms":$ms) : qq("${name}_at":null,"${name}_ms":null) }

sub record {
	my ($j) = @_;
	my $l = $j->{last} // {};
	my $head = open_job($j) ? head($j) : $j;
	return join(',', qq({"id":$j->{id}), '"claim":' . text($j->{state} eq 'claimed' ? $j->{word} : undef), map({ qq("$_":) . text($j->{$_}) } qw(queue type key entity)), qq("priority":$j->{priority}),
	    qq("state":"$j->{state}"), '"attempt":' . ($j->{spent} + ($j->{state} !~ /^(dead|cancelled)$/)), qq("generation":$j->{generation}), qq("attempts":$j->{attempts}),
	    '"backoff_ms":null', '"backoff_cap_ms":null', '"window_ms":' . ($j->{window} // 'null'), qq("payload":"$j->{payload}"), moment(added => $j->{added}),
	    moment(due => $j->{due}), '"zone":null', moment(event => $j->{event}), moment(claimed => $j->{claimed}),
	    moment(settled => $j->{state} eq 'claimed' ? undef : $j->{finished} // $l->{at}), '"outcome":' . text($l->{outcome}), '"exit":null', '"signal":null',
	    '"worker":' . (defined $j->{claimed} ? '"W"' : 'null'), '"count":' . ($l->{count} // 'null'), '"reason":' . text($l->{reason}),
	    '"result":' . text($l->{result}), '"blocked_by":' . ($head == $j ? 'null' : $head->{id})) . "}\n";
}

sub list {		# all jobs in the order of qls
	my @all = grep defined, @jobs;
	my @rows;
	my %queue = map { $_->{queue} => 1 } @all;
	for my $q (sort keys %queue) {
		my @of = grep { $_->{queue} eq $q } @all;
		push @rows, sort { $a->{lease} <=> $b->{lease} || $a->{id} <=> $b->{id} } grep { $_->{state} eq 'claimed' } @of;
		push @rows, sort { $a->{priority} <=> $b->{priority} || $a->{due} <=> $b->{due} || $a->{id} <=> $b->{id} } grep { ready($_) } @of;
		push @rows, sort { $a->{entity} cmp $b->{entity} || $a->{event} <=> $b->{event} || $a->{id} <=> $b->{id} } grep { open_job($_) && !ready($_) } @of;
		push @rows, grep { $_->{state} eq 'dead' } @of;
	}
	return join '', map { record($_) } @rows, grep { $_->{state} =~ /^(done|cancelled)$/ } @all;
}

sub counts {
	my (%n, $out);
	for (grep defined, @jobs) {
		$n{$_->{queue}}{$_->{state}}++;
		$n{$_->{queue}}{blocked}++ if open_job($_) && !ready($_);
	}
	return join '', map { my $q = $_; join("\t", $q, map { $n{$q}{$_} // 0 } qw(pending claimed failed done dead cancelled blocked)) . "\n" } sort keys %n;
}

# ---- the programs ----

my @log;
sub run {		# standard input, command: exit status, standard output with the worker made anonymous
	my ($in, @cmd) = @_;
	my $at = iso($now, 1);
	@ENV{'Q_NOW', 'Q_BOOT'} = ($at, "boot$bootid:$boot");
	push @log, "Q_NOW=$ENV{Q_NOW} Q_BOOT=$ENV{Q_BOOT} @cmd" . ($in ne '' ? " <<'END'\n${in}END" : '');
	open my $f, '+>', undef or die;
	syswrite $f, $in;
	sysseek $f, 0, 0;
	defined(my $pid = open my $o, '-|') or die;
	if ($pid == 0) {
		open STDIN, '<&', $f;
		open STDERR, '>>', 'err';
		exec @cmd or die "$cmd[0]: $!";
	}
	my $out = do { local $/; <$o> } // '';
	close $o;
	$out =~ s/"worker":"[^"]*"/"worker":"W"/g;
	push @log, '# exit ' . ($? >> 8) . ' ' . $out;
	return ($? >> 8, $out);
}

my $wrong = 0;
sub agree {
	my ($got, $want, $what) = @_;
	return if $got eq $want;
	$wrong = 1;
	fail($what);
	my (@got, @want) = split /^/, $got;
	@want = split /^/, $want;
	for (0 .. (@got > @want ? $#got : $#want)) {
		next if ($got[$_] // '') eq ($want[$_] // '');
		diag("first difference, line ", $_ + 1, "\n   got: ", $got[$_] // "nothing\n", "  want: ", $want[$_] // "nothing\n");
		last;
	}
	diag("the last commands:\n", join "\n", @log > 24 ? @log[-24 .. -1] : @log);
	diag("again with SEED=$seed OPS=$ops");
}

my @words;		# claims that were given out, the newest last
sub some {		# claims, most of them held
	my ($n) = @_;
	my @held = map { $_->{word} } grep { defined && $_->{state} eq 'claimed' } @jobs;
	return map { @held && rand() < .7 ? $held[rand @held] : $words[rand @words] } 1 .. $n;
}
sub either { $_[rand @_] }
my @queues = qw(mail sms bulk);

sub op_add {
	my $dup = either('', '', '--replace', '--strict');
	my %policy = (attempts => either(1, 2, 3, 20, 20), window => rand() < .2 ? int(rand 4) * 3_600_000 : undef);
	my ($in, @specs) = ('');
	for (1 .. 1 + rand 5) {
		my $due = $now + either(0, 0, -60_000, 30_000, int(rand 200_000) - 100_000, 7_200_000);
		my $s = { %policy, queue => either(@queues), type => either(undef, undef, 'a', 'b'), key => rand() < .4 ? 'k' . int rand 25 : undef,
		    entity => rand() < .5 ? 'e' . int rand 4 : undef, priority => int rand 4, due => $due, payload => 'p' . int rand 30 };
		$s->{event} = rand() < .3 ? $now - int rand 300_000 : $due;
		push @specs, $s;
		$in .= '{' . join(',', map({ defined $s->{$_} ? qq("$_":"$s->{$_}") : () } qw(queue type key entity payload)),
		    qq("priority":$s->{priority}), qq("due_ms":$due), $s->{event} == $due ? () : qq("event_ms":$s->{event})) . "}\n";
	}
	my ($jobs, $keys, @ids) = (dclone(\@jobs), dclone(\%keys));
	my $status = 0;
	for (@specs) {
		my $id = add($_, $dup);
		if (!defined $id) {		# all or nothing
			@jobs = @$jobs;
			%keys = %$keys;
			@ids = ();
			$status = 65;
			last;
		}
		push @ids, $id;
	}
	my ($rc, $out) = run($in, 'qadd', '--attempts', $policy{attempts}, defined $policy{window} ? ('--window', "$policy{window}ms") : (), $dup || (), '--jsonl');
	agree("$rc\n$out", "$status\n" . join('', map { "$_\n" } @ids), 'qadd prints the ids');
}

sub op_claim {
	my @from = map { either(@queues) } 1 .. 1 + rand 3;
	my ($n, $lease, $type) = (1 + int rand 4, 1000 * either(30, 100, 300), rand() < .2 ? either('a', 'b') : undef);
	my @got = claim(\@from, $n, $lease, $type);
	my ($rc, $out) = run('', 'qclaim', '-c', $n, '-l', "${lease}ms", defined $type ? ('-t', $type) : (), @from);
	my $want = '';
	my @told = $out =~ /"claim":"([^"]*)"/g;
	for (@got) {
		my $word = shift @told // '';
		my ($id, $fence, $nonce) = $word =~ /^(\d+)\.(\d+)\.([0-9a-f]{8})$/;
		agree(join('.', $id // '', $fence // ''), "$_->{id}.$_->{fence}", 'the claim names job and number');
		$_->{word} = $word;
		push @words, $word;
		$want .= record($_);
	}
	agree("$rc\n$out", "0\n$want", 'qclaim prints the jobs in their order');
}

sub op_settle {
	return if !@words;
	my @claims = some(1 + int rand 3);
	my $how = either(qw(done done done in in dead defer release renew renew));
	my %o = (ms => 1000 * either(0, 1, 60, 4000), reason => rand() < .5 ? 'why ' . int rand 9 : undef,
	    count => rand() < .3 ? int rand 9 : undef, result => rand() < .3 ? 'r' . int rand 9 : undef);
	$o{ms} ||= 1000 if $how eq 'renew';
	my @cmd = $how eq 'done' ? ('qdone', defined $o{count} ? ('--count', $o{count}) : (), defined $o{result} ? ('-r', $o{result}) : ())
	    : $how eq 'renew' ? ('qrenew', '-l', "$o{ms}ms")
	    : ('qfail', defined $o{reason} ? ('-m', $o{reason}) : (), "--$how", $how eq 'in' || $how eq 'defer' ? "$o{ms}ms" : ());
	see_boot() if $how eq 'renew';
	my $status = 0;
	$status = settle($_, $how, %o) || $status for @claims;
	my $bad = rand() < .1;
	$status ||= 65 if $bad;
	my @all = ($bad ? '1.2' : (), @claims);
	my ($rc, $out) = rand() < .5 ? run('', @cmd, @all) : run(join('', map { "$_\n" } @all), @cmd, '-');
	agree("$rc\n$out", "$status\n", "$how settles, or is refused");
}

# Each of these once, in this order; what is printed and how it ends.
sub each_of {
	my ($do, @ids) = @_;
	my (%seen, $out);
	my $worst = grep({ $_ == 0 } @ids) ? 65 : 0;
	for (grep { $_ > 0 && !$seen{$_}++ } @ids) {
		my ($status, $id) = $do->($_);
		$worst = $status if $status > $worst;
		$out .= "$id\n" if defined $id;
	}
	return "$worst\n" . ($out // '');
}

# Jobs by number, now and then one that is none, or not there.
sub numbers { map { rand() < .02 ? either(0, @jobs + 7) : 1 + int rand(@jobs || 1) } 1 .. 1 + rand 3 }
sub by_number {
	my ($do, $what, @cmd) = @_;
	my @ids = numbers();
	my ($rc, $out) = rand() < .5 ? run('', @cmd, @ids) : run(join('', map { "$_\n" } @ids), @cmd, '-');
	agree("$rc\n$out", each_of($do, @ids), $what);
}

sub op_cancel {
	my $q = either(@queues);
	return by_number(\&cancel, 'qcancel says which it cancelled', 'qcancel') if rand() < .6;
	if (rand() < .5) {
		my $key = 'k' . int rand 25;
		my $id = $keys{"$q $key"} // @jobs + 1;
		my ($rc, $out) = run('', 'qcancel', '-k', $key, $q);
		return agree("$rc\n$out", each_of(\&cancel, $id), 'qcancel -k');
	}
	my $entity = 'e' . int rand 4;
	my @of = sort { $a->{event} <=> $b->{event} || $a->{id} <=> $b->{id} }
	    grep { defined && $_->{queue} eq $q && ($_->{entity} // '') eq $entity && unfinished($_) } @jobs;
	my ($rc, $out) = run('', 'qcancel', '-e', $entity, $q);
	agree("$rc\n$out", each_of(\&cancel, map { $_->{id} } @of), 'qcancel -e');
}

sub op_replay {
	return by_number(\&replay, 'qreplay says which it put back', 'qreplay') if rand() < .6;
	my ($q, $states) = (either(@queues), either('dead', 'dead', 'cancelled', 'done,dead', 'done,cancelled'));
	my $entity = rand() < .7 ? 'e' . int rand 4 : undef;
	my @of = grep { defined && $_->{queue} eq $q && $states =~ /$_->{state}/ && (!defined $entity || ($_->{entity} // '') eq $entity) } @jobs;
	my ($rc, $out) = run('', 'qreplay', '--state', $states, defined $entity ? ('-e', $entity) : (), $q);
	agree("$rc\n$out", each_of(\&replay, map { $_->{id} } (grep { $_->{state} eq 'dead' } @of), grep { $_->{state} ne 'dead' } @of),
	    "qreplay --state $states");
}

sub op_time {
	my $r = rand;
	my $ms = $r < .8 ? int rand 20_000 : $r < .95 ? int rand 400_000 : int rand 90_000_000;
	$now += $ms;
	$boot += $ms;
	$now += either(-86_400_000, -3_600_000, 3_600_000, 86_400_000) if rand() < .03;	# somebody sets the clock
	($bootid, $boot) = ($bootid + 1, int rand 3_000_000) if rand() < .02;
}

is((run('', 'qinit'))[0], 0, 'a new file');
my $done = 0;
while ($done < $ops && !$wrong) {
	op_time();
	(either(\&op_add, \&op_add, (\&op_claim) x 4, (\&op_settle) x 6, \&op_cancel, \&op_replay))->();
	$done++;
	if (!$wrong && ($done % 4 == 0 || $done == $ops)) {
		my ($rc, $out) = run('', 'qls', '-j', '--state', 'all');
		agree("$rc\n$out", "0\n" . list(), "after $done operations qls shows the jobs of the model");
		pop @log for 1 .. 2;		# which is long and says nothing
	}
	if (!$wrong && $done % 50 == 0) {
		agree((run('', 'qls', '--counts'))[1], counts(), "after $done operations qls --counts are those of the model");
	}
}
ok(!$wrong, "$done operations: the programs did what the model did");
my (undef, $ledger) = run('', 'sqlite3', '-readonly', 'q.db',
    'SELECT job, generation, attempt, fence, due_ms, started_ms, finished_ms, outcome, state, count, reason, result FROM q_attempt ORDER BY id');
agree($ledger, join('', map { "$_\n" } @ledger), 'the ledgers are the same') if !$wrong;
ok(!$wrong, 'the ledger has the same ' . @ledger . ' attempts');
my %seen;
$seen{(split /\|/)[7]}++ for @ledger;
$seen{cancelled} = grep { defined && $_->{state} eq 'cancelled' } @jobs;
$seen{replayed} = grep { defined && $_->{generation} > 1 } @jobs;
note(join ', ', map { "$seen{$_} $_" } sort keys %seen);
is((run('', 'sqlite3', '-readonly', 'q.db', 'PRAGMA integrity_check'))[1], "ok\n", 'the file is sound');
done_testing();
